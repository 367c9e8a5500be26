"""How much is run: in ten minutes, or everything."""

from collections.abc import Mapping
from dataclasses import dataclass

from lodl_benchmarks.peers._methods import METHODS, OURS, TWO_STAGE
from lodl_benchmarks.peers._tasks import TASKS

_CORE = (TWO_STAGE, "SPO+", "PFYL", "lsLTR", "NCE", OURS)


@dataclass(frozen=True)
class Scale:
    """What is run unless something else is asked for.

    Attributes:
        tasks: Names of the tasks.
        methods: Names of the methods.
        seeds: Data seeds.
        n_initialisations: Models to average.
    """

    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: range
    n_initialisations: int


SCALES: Mapping[str, Scale] = {
    "quick": Scale(("path-100-6", "knapsack-16", "newsvendor"), _CORE, range(1, 2), 2),
    "full": Scale(tuple(TASKS), tuple(METHODS), range(16, 21), 3),
}
"""The scales by name. Seeds 1 to 5 were looked at while the harness was built, 6 to 15 before the
learner's present defaults were chosen."""
