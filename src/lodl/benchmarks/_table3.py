"""Table 3: does the error of a learned loss tell the quality of decisions?

Each learned loss has an error around the labels, where it was sampled (the paper's Gaussian
neighbourhood), and one at the predictions of the models that were trained on it (the empirical
neighbourhood). The paper finds that decision quality falls in a straight line with the second, from
1 at no error, and does not depend on the first.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from scipy import stats

from lodl.benchmarks._quality_table import mean_std
from lodl.benchmarks._results import Row
from lodl.benchmarks._setup import SETUPS, Setup
from lodl.benchmarks._table1 import SCALES, ScaleOfRun
from lodl.paper import ERROR_UNITS, TABLE3, ErrorUnit, MeanStd, Published

ERRORS = ("empirical", "gaussian")
"""The neighbourhoods in which errors are measured."""

TABLE3_SCALES: dict[str, ScaleOfRun] = {
    **SCALES,
    "quick": replace(SCALES["quick"], n_seeds=1, n_samples=500),
}
"""Those of table 1, whose rows are taken over, but for a smaller quick: three domains are more."""

_PUBLISHED = {"web": TABLE3}


def table3_info(rows: Iterable[Row], setups: Mapping[str, Setup] = SETUPS) -> dict[str, Any]:
    """Returns errors, decision quality and how they hang together, as JSON values.

    Args:
        rows: Of any methods and domains; those without errors are left out.
        setups: The domains by name.

    Returns:
        `domains`: for each its `title`, the `unit` of errors, `methods` and `trends`. A method has
        "empirical", "gaussian" and "quality" (mean and std), the same of all its `runs`, and of the
        `paper`, which may be None. `trends` has, by error, the straight line of quality on that
        error: of the methods' means, of all runs, and of the means that the paper prints; and the
        method without which the first is the least correlated: one far off can make a line alone.
    """
    groups: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        if row.get("empirical_error"):
            groups.setdefault(row["domain"], {}).setdefault(row["method"], []).append(row)
    return {
        "kind": "fidelity",
        "domains": {name: _domain(name, group, setups[name]) for name, group in groups.items()},
    }


def _domain(name: str, rows: Mapping[str, Sequence[Row]], setup: Setup) -> dict[str, Any]:
    unit = ERROR_UNITS.get(name, ErrorUnit())
    published = _PUBLISHED.get(name, {})
    methods = {
        method: {**_method(group, unit.factor), "paper": _paper(published.get(method))}
        for method, group in rows.items()
    }
    trends = {error: _trends(methods, error) for error in ERRORS}
    return {"title": setup.title, "unit": unit.name, "methods": methods, "trends": trends}


def _method(rows: Sequence[Row], factor: float) -> dict[str, Any]:
    runs = {
        "empirical": [factor * error for row in rows for error in row["empirical_error"]],
        # One loss, so one error around labels, serves all initialisations of a seed.
        "gaussian": [factor * row["gaussian_error"] for row in rows for _ in row["test"]],
        "quality": [quality for row in rows for quality in row["test"]],
    }
    return {**{name: asdict(mean_std(values)) for name, values in runs.items()}, "runs": runs}


def _paper(figures: Mapping[str, Published] | None) -> dict[str, Any] | None:
    if figures is None:
        return None
    return {name: asdict(MeanStd(*figure)) for name, figure in figures.items()}


def _trends(methods: Mapping[str, Mapping[str, Any]], error: str) -> dict[str, Any]:
    errors, qualities = (
        [value for method in methods.values() for value in method["runs"][name]]
        for name in (error, "quality")
    )
    paper = [method["paper"] for method in methods.values() if method["paper"] is not None]
    return {
        "of_methods": _trend_of_means(methods.values(), error),
        "without_one": _without_one(methods, error),
        # Runs share losses and domain seeds: an interval that takes them for independent would lie.
        "of_runs": _trend(errors, qualities, independent=False),
        "of_paper": _trend_of_means(paper, error),
    }


def _without_one(methods: Mapping[str, Mapping[str, Any]], error: str) -> dict[str, Any] | None:
    """Returns the method without which the correlation is the weakest, or even of another sign."""
    of_all = _trend_of_means(methods.values(), error)
    left_out = {name: [methods[other] for other in methods if other != name] for name in methods}
    trends = {name: _trend_of_means(others, error) for name, others in left_out.items()}
    correlations = {name: trend["correlation"] for name, trend in trends.items() if trend}
    if of_all is None or not correlations:
        return None
    name = min(correlations, key=lambda name: of_all["correlation"] * correlations[name])
    return {"method": name, "correlation": correlations[name]}


def _trend_of_means(methods: Iterable[Mapping[str, Any]], error: str) -> dict[str, Any] | None:
    means = [(method[error]["mean"], method["quality"]["mean"]) for method in methods]
    return _trend([error for error, _ in means], [quality for _, quality in means])


def _trend(
    errors: Sequence[float], qualities: Sequence[float], *, independent: bool = True
) -> dict[str, Any] | None:
    """Returns the least-squares line and its correlation, None where they are not defined.

    Its intercept has an interval where the points are independent.
    """
    if len(errors) < 3 or np.ptp(errors) == 0 or np.ptp(qualities) == 0:
        return None
    line = stats.linregress(errors, qualities)
    half = float(stats.t.ppf(0.975, len(errors) - 2) * line.intercept_stderr)
    interval = [float(line.intercept) - half, float(line.intercept) + half]
    return {
        "slope": float(line.slope),
        "intercept": float(line.intercept),
        "intercept_95": interval if independent else None,
        "correlation": float(line.rvalue),
        "n": len(errors),
    }
