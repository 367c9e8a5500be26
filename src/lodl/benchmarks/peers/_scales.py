"""How much is run: in ten minutes, or everything."""

from collections.abc import Mapping
from dataclasses import dataclass

from lodl.benchmarks.peers._methods import METHODS, OURS, TWO_STAGE
from lodl.benchmarks.peers._tasks import TASKS

_CORE = (TWO_STAGE, "SPO+", "PFYL", "lsLTR", "NCE", OURS)


@dataclass(frozen=True)
class Scale:
    """What is run unless something else is asked for.

    Attributes:
        tasks: Names of the tasks.
        methods: Names of the methods.
        n_seeds: Number of data seeds.
    """

    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    n_seeds: int


SCALES: Mapping[str, Scale] = {
    "quick": Scale(("path-100-6", "knapsack-16", "newsvendor"), _CORE, 1),
    "full": Scale(tuple(TASKS), tuple(METHODS), 5),
}
"""The scales by name."""
