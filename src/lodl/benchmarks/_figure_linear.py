"""What the models of the Linear Model have learned: their prediction for every feature."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from lodl._threads import one_torch_thread
from lodl._typing import Array
from lodl.benchmarks._methods import METHODS, Task
from lodl.benchmarks._results import Row
from lodl.benchmarks._rounded import rounded
from lodl.benchmarks._run import Experiment, loss_path, sample
from lodl.benchmarks._setup import Setup
from lodl.benchmarks._table1 import ScaleOfRun, table1_experiments
from lodl.domains import Instances

_METHODS = ("2-stage", "DFL", "DirectedQuadratic", "ConvexDirectedQuadratic")
_SETTINGS = ("method", "seed", "n_initialisations", "n_samples", "sampler", "surrogate", "training")


def figure_linear_experiments(scale: ScaleOfRun, setup: Setup) -> list[Experiment]:
    """Returns the experiments of the figure, which are those of table 1."""
    plan = table1_experiments(scale, {"linear": setup}, ["linear"])
    return [e for e in plan if e.method in _METHODS]


def figure_linear_settings(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Returns what the figure is made of, as JSON values."""
    return [{name: row[name] for name in (*_SETTINGS, "data", "versions")} for row in rows]


def figure_linear_info(
    plan: Sequence[Experiment],
    rows: Sequence[Row],
    *,
    setup: Setup,
    out: Path,
    n_jobs: int | None = None,
) -> dict[str, Any]:
    """Trains the models of the rows again and returns what they predict, as data.

    `y_hat[m][i]` is the prediction of model m for the feature `x[i]`, whose true utility is `y[i]`,
    and `quality[m]` the model's normalised test decision quality; `n_rising` models predict more
    for the largest feature than for the smallest.

    Args:
        plan: The experiments.
        rows: Their rows, in order.
        setup: Of the domain.
        out: Folder of the samples and losses, as given to `run`.
        n_jobs: Workers, as in joblib.
    """
    items = _items_in_order(setup.build(plan[0].seed).splits.test)
    predictions = Parallel(n_jobs=n_jobs)(
        delayed(_predict)(experiment, setup, out, items) for experiment in plan
    )
    methods = []
    for method in _METHODS:
        chosen = [i for i, experiment in enumerate(plan) if experiment.method == method]
        y_hat = np.concatenate([predictions[i] for i in chosen])
        quality = np.concatenate([rows[i]["test"] for i in chosen])
        methods.append(
            {
                "name": method,
                "y_hat": rounded(y_hat),
                "quality": rounded(quality),
                "n_rising": int((y_hat[:, -1] > y_hat[:, 0]).sum()),
            }
        )
    return {
        "settings": figure_linear_settings(rows),
        "x": rounded(items.x.ravel()),
        "y": rounded(items.y.ravel()),
        "methods": methods,
    }


def _items_in_order(part: Instances) -> Instances:
    """Returns one instance whose items are spread over all features there are, in order."""
    n_items = part.y.shape[1]
    order = np.argsort(part.x, axis=None)
    chosen = order[np.linspace(0, len(order) - 1, n_items).astype(int)]
    return Instances(part.x.reshape(1, -1, 1)[:, chosen], part.y.reshape(1, -1)[:, chosen])


@one_torch_thread()
def _predict(experiment: Experiment, setup: Setup, out: Path, items: Instances) -> Array:
    """Returns the predictions of the experiment's models for the items, shape (models, items)."""
    method, domain = METHODS[experiment.method], setup.build(experiment.seed)
    samples = sample(experiment, setup, out, progress=False) if method.needs_samples else None
    outcome = method.run(
        Task(
            domain=replace(domain, splits=replace(domain.splits, test=items)),
            surrogate=experiment.surrogate,
            settings=replace(setup.training, learning_rate=experiment.learning_rate),
            n_initialisations=experiment.n_initialisations,
            samples=samples,
            loss_path=loss_path(out, experiment, setup),
        )
    )
    return outcome.y_hat_test[:, 0]
