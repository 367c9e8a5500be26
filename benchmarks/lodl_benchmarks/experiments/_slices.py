"""Learned losses along lines through labels, beside the true regret."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lodl.losses import load_loss
from lodl_benchmarks.runner import METHODS, Experiment, Setup, loss_path
from lodl_benchmarks.slices import loss_slices


def slices_of_losses(
    experiments: Sequence[Experiment], out: Path, setups: Mapping[str, Setup]
) -> dict[str, Any] | None:
    """Return slices of the losses of the first experiment's domain and seed, as JSON values.

    They are what `loss_slices` returns, or None if the folder `out` of a run holds only rows.
    """
    first = experiments[0]
    setup = setups[first.domain]
    paths: dict[str, Path] = {}
    for e in experiments:
        if (e.domain, e.seed) == (first.domain, first.seed) and METHODS[e.method].needs_samples:
            paths.setdefault(
                e.method, loss_path(out, e, setup)
            )  # the experiment with the fewest samples
    domain = setup.build(first.seed)
    part = domain.splits.train_and_validation
    losses = {method: load_loss(path, y=part.y) for method, path in paths.items() if path.exists()}
    if not losses:
        return None
    info = loss_slices(losses, domain.problem, part.y, context=part.context)
    return {**info, "title": f"{setup.title}, domain seed {first.seed}"}
