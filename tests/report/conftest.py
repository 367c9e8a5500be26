import json
from functools import partial

import pytest

from lodl.report import write_report


def _row(domain, method, seed, test, **more):
    is_learned = method in ("Quadratic", "ConvexDirectedQuadratic")
    return {
        "domain": domain,
        "method": method,
        "seed": seed,
        "test": test,
        "validation": test,
        "sampler": "AllPerturbed(0.1)",
        "n_samples": 2000,
        "n_initialisations": len(test),
        "learning_rate": 0.001,
        "training": {"n_steps": 100, "learning_rate": 0.001, "batch_size": None},
        "oracle_calls": 200_100 if is_learned else 0,
        "seconds_sampling": 0.5 if is_learned else 0.0,
        "seconds_fitting": 6.0 if is_learned else 0.0,
        "seconds_training": 0.0 if method in ("Random", "Optimal") else 4.0,
        "gaussian_error": 0.05 if is_learned else None,
        "empirical_error": [0.01] * len(test) if is_learned else [],
        "data": "0123456789abcdef",
        "versions": {"lodl": "0.1.0", "numpy": "2.4.6"},
    } | more


@pytest.fixture
def row():
    """Makes a row as experiments write it: row(domain, method, seed, test, **more)."""
    return _row


@pytest.fixture
def write_rows(tmp_path):
    """Writes rows into a run's folder and returns the folder."""
    return partial(_write_rows, tmp_path)


def _write_rows(folder, *rows):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "rows.jsonl").write_text(text, encoding="utf-8")
    return folder


def _write_json(folder, name, info):
    (folder / f"{name}.json").write_text(json.dumps(info), encoding="utf-8")


_SECONDS = {"2-stage": [2.0, 2.0], "DFL": [9.0, 9.0], "ConvexDirectedQuadratic": [40.0, 22.0]}
_COST = {
    "title": "Small",
    "measured": [{"cores": 1, "seconds": {name: s[0] for name, s in _SECONDS.items()}}],
    "by_cores": {"cores": [1, 2], "seconds": _SECONDS},
    "by_models": {"models": [1, 2], "seconds": _SECONDS},
    "formula": {name: s[0] for name, s in _SECONDS.items()},
    "break_even": None,
}
_AXIS = [-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0]
_LOSS = {
    "name": "decision loss",
    "kind": "true",
    "surface": [[float(a > b) for a in _AXIS] for b in _AXIS],
    "on_line": [float(a > 0.5) for a in _AXIS],
    "descent": [0, 0],
}
_PAPER_FIGURES = {
    "figure-losses": {
        "label": [0, 1],
        "swapped": [1, 0],
        "axis": _AXIS,
        "line": _AXIS,
        "losses": [_LOSS],
    },
    "figure-linear": {
        "x": [-1.0, 0.0, 1.0],
        "y": [-3.5, 0.0, 3.5],
        "methods": [{"name": "DFL", "y_hat": [[-1.0, 0.0, 1.0]], "quality": [0.9], "n_rising": 1}],
    },
    "figure-cost": {"domains": [_COST]},
}


def _figures(mean):
    return {"mean": mean, "std": 0.1 * mean}


@pytest.fixture
def run_folder(tmp_path):
    """A folder as the demo and the paper's tables leave it, with data for every section."""
    return _fill(tmp_path)


@pytest.fixture(scope="session")
def report_path(tmp_path_factory):
    """The report of such a folder."""
    return write_report(_fill(tmp_path_factory.mktemp("run")))


def _fill(folder):
    _write_rows(
        folder,
        *(_row("web", "Random", seed, [0.0, 0.02]) for seed in (0, 1)),
        *(_row("web", "Optimal", seed, [1.0]) for seed in (0, 1)),
        *(_row("web", "2-stage", seed, [0.3, 0.5]) for seed in (0, 1)),
        *(_row("web", "Quadratic", seed, [0.9, 0.92]) for seed in (0, 1)),
        *(_row("web", "ConvexDirectedQuadratic", seed, [0.97, 0.99]) for seed in (0, 1)),
        _row("web", "Quadratic", 0, [0.7, 0.8], n_samples=50),
        _row("web", "Quadratic", 0, [0.2, 0.4], learning_rate=0.1),
        _row("linear", "2-stage", 0, [-0.9, -0.95]),
    )
    runs = {"empirical": [0.01, 0.02], "gaussian": [0.05, 0.05], "quality": [0.9, 0.92]}
    published = {error: _figures(values[1]) for error, values in runs.items()}
    methods = {
        name: {error: _figures(values[0] * factor) for error, values in runs.items()}
        | {"runs": runs, "paper": paper}
        for name, factor, paper in [
            ("Quadratic", 1.0, published),
            ("ConvexDirectedQuadratic", 1.05, None),
        ]
    }
    line = {"slope": -2.0, "intercept": 0.9, "intercept_95": [0.8, 1.0], "correlation": -0.8}
    trend = {"of_methods": line, "of_runs": None}
    trends = {"empirical": trend, "gaussian": trend}
    web = {"title": "Web Advertising", "unit": "expected clicks", "methods": methods}
    _write_json(
        folder, "table3", {"kind": "fidelity", "domains": {"web": web | {"trends": trends}}}
    )
    cell = {"method": "Quadratic", "column": 50, "sampler": "AllPerturbed(0.1)", "n_samples": 50}
    cell |= {"ours": _figures(0.75), "paper": _figures(0.68)}
    _write_json(folder, "table2b", {"kind": "quality", "cells": [cell]})
    line = {
        "instance": 7,
        "direction": "coordinate (1, 2)",
        "offsets": [-1.0, 0.0, 1.0],
        "regret": [0.0, 0.0, 0.5],
        "loss": {"Quadratic": [0.2, 0.0, 0.2], "ConvexDirectedQuadratic": [0.0, 0.0, 0.4]},
    }
    other = line | {"direction": "towards the prediction", "regret": [0.0, 0.0, 0.0]}
    _write_json(folder, "slices", {"kind": "slices", "title": "t", "slices": [line, other]})
    for name, info in _PAPER_FIGURES.items():
        _write_json(folder, name, info)
    return folder
