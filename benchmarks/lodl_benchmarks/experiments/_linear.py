"""Data of the figure of the Linear Model: predictions of trained models for every feature."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from lodl._threads import one_torch_thread
from lodl._typing import Array
from lodl.domains import Split
from lodl_benchmarks.experiments._rounded import rounded, rounded_rows
from lodl_benchmarks.pages import Row
from lodl_benchmarks.paper import LinearFigure, LinearSettings, MethodLines
from lodl_benchmarks.runner import METHODS, Experiment, Run, Setup, loss_path, sample


def linear_settings(
    plan: Sequence[Experiment], rows: Sequence[Row], setup: Setup
) -> tuple[LinearSettings, ...]:
    """Return the experiments that the figure shows."""
    return tuple(
        LinearSettings(
            method=e.method,
            seed=e.seed,
            n_initialisations=e.n_initialisations,
            n_samples=e.n_samples,
            sampler=e.sampler_name,
            surrogate=e.surrogate_name if METHODS[e.method].needs_surrogate else None,
            training=asdict(setup.training) | {"learning_rate": e.learning_rate},
            data=row.data,
            versions=dict(row.versions),
        )
        for e, row in zip(plan, rows, strict=True)
    )


def linear_figure(
    plan: Sequence[Experiment],
    rows: Sequence[Row],
    *,
    setup: Setup,
    out: Path,
    n_jobs: int | None = None,
) -> LinearFigure:
    """Train the models of the rows again and return what they predict."""
    items = _items_in_order(setup.build(plan[0].seed).splits.test)
    predictions = Parallel(n_jobs=n_jobs)(
        delayed(_predict)(experiment, setup, out, items) for experiment in plan
    )
    methods = []
    for method in dict.fromkeys(experiment.method for experiment in plan):
        chosen = [i for i, experiment in enumerate(plan) if experiment.method == method]
        y_hat = np.concatenate([predictions[i] for i in chosen])
        methods.append(
            MethodLines(
                name=method,
                y_hat=rounded_rows(y_hat),
                quality=rounded(np.concatenate([rows[i].test for i in chosen])),
                n_rising=int((y_hat[:, -1] > y_hat[:, 0]).sum()),
            )
        )
    return LinearFigure(
        settings=linear_settings(plan, rows, setup),
        x=rounded(items.x.ravel()),
        y=rounded(items.y.ravel()),
        methods=tuple(methods),
    )


def _items_in_order(part: Split) -> Split:
    """Return one instance whose items are spread over all features there are, in order."""
    n_items = part.y.shape[1]
    order = np.argsort(part.x, axis=None)
    chosen = order[np.linspace(0, len(order) - 1, n_items).astype(int)]
    return Split(part.x.reshape(1, -1, 1)[:, chosen], part.y.reshape(1, -1)[:, chosen])


@one_torch_thread()
def _predict(experiment: Experiment, setup: Setup, out: Path, items: Split) -> Array:
    """Return the predictions of the experiment's models for the items, shape (models, items)."""
    method, domain = METHODS[experiment.method], setup.build(experiment.seed)
    samples = sample(experiment, setup, out, progress=False) if method.needs_samples else None
    output = method.run(
        Run(
            domain=replace(domain, splits=replace(domain.splits, test=items)),
            surrogate=experiment.surrogate,
            settings=replace(setup.training, learning_rate=experiment.learning_rate),
            n_initialisations=experiment.n_initialisations,
            samples=samples,
            loss_path=loss_path(out, experiment, setup),
        )
    )
    return output.y_hat_test[:, 0]
