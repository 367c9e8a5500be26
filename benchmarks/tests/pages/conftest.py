import json
from functools import partial

import pytest

from lodl._json import write_json
from lodl_benchmarks.pages import parse_row
from lodl_benchmarks.paper import table2b, write_report


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


_SECONDS = {"2-stage": [2.0, 2.0], "DFL": [9.0, 9.0], "ConvexDirectedQuadratic": [40.0, 22.0]}
_COST = {
    "title": "Small",
    "domain": "small",
    "counts": {},
    "units": {},
    "fit_steps": 1.0,
    "training": {},
    "serial": 0.0,
    "break_even_models": None,
    "measured": [
        {
            "cores": 1,
            "sampling": 1.0,
            "fitting": 1.0,
            "seconds": {name: s[0] for name, s in _SECONDS.items()},
        }
    ],
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
        "settings": {"n_samples": 1},
        "label": [0, 1],
        "swapped": [1, 0],
        "axis": _AXIS,
        "line": _AXIS,
        "losses": [_LOSS],
    },
    "figure-linear": {
        "settings": [],
        "x": [-1.0, 0.0, 1.0],
        "y": [-3.5, 0.0, 3.5],
        "methods": [{"name": "DFL", "y_hat": [[-1.0, 0.0, 1.0]], "quality": [0.9], "n_rising": 1}],
    },
    "figure-cost": {
        "settings": {"n_samples": 1, "n_steps": 1, "cores": [1], "domains": [], "versions": {}},
        "machine": {},
        "domains": [_COST],
    },
}


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
        _row("web", "NN", 0, [0.8, 0.9], empirical_error=[0.02, 0.03], gaussian_error=0.06),
        *(_row("web", "Quadratic", seed, [0.9, 0.92]) for seed in (0, 1)),
        *(_row("web", "ConvexDirectedQuadratic", seed, [0.97, 0.99]) for seed in (0, 1)),
        _row("web", "Quadratic", 0, [0.7, 0.8], n_samples=50),
        _row("web", "Quadratic", 0, [0.2, 0.4], learning_rate=0.1),
        _row("linear", "2-stage", 0, [-0.9, -0.95]),
    )
    few = _row("web", "Quadratic", 0, [0.7, 0.8], n_samples=50)
    write_json(folder / "table2b.json", table2b([parse_row(few)]))
    line = {
        "instance": 7,
        "direction": "coordinate (1, 2)",
        "offsets": [-1.0, 0.0, 1.0],
        "regret": [0.0, 0.0, 0.5],
        "loss": {"Quadratic": [0.2, 0.0, 0.2], "ConvexDirectedQuadratic": [0.0, 0.0, 0.4]},
    }
    other = line | {"direction": "towards the prediction", "regret": [0.0, 0.0, 0.0]}
    write_json(folder / "slices.json", {"kind": "slices", "title": "t", "slices": [line, other]})
    for name, info in _PAPER_FIGURES.items():
        write_json(folder / f"{name}.json", info)
    return folder
