import json
from dataclasses import replace
from functools import partial
from math import comb

import numpy as np
import pytest
from scipy.optimize import linprog
from typer.testing import CliRunner

from lodl.cli._app import app
from lodl.domains import ShortestPath, shortest_path
from lodl.errors import DataError
from lodl_benchmarks import spo
from lodl_benchmarks.domains import all_paths
from lodl_benchmarks.runner import Trial
from lodl_benchmarks.spo import _methods, _tasks
from lodl_benchmarks.spo._tables import columns

pytestmark = pytest.mark.slow

CELL, FLAT = "100-0.5-4", "100-0.5-1"


def small(seed, degree=4):
    return shortest_path(seed, sizes=(20, 5, 30), grid=(3, 3), degree=degree, noise=0.5)


SMALL = {name: replace(spo.CELLS[name], build=small) for name in (CELL, FLAT)}


@pytest.fixture(scope="module", autouse=True)
def _few_penalties_and_trees():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_methods, "_STRENGTHS", (1e-6, 1e-2, 100.0))
        patch.setattr(_methods, "_N_TREES", 5)
        yield


@pytest.mark.parametrize("grid", [(1, 4), (2, 3), (5, 5)])
def test_all_paths_are_counted_differ_and_the_best_of_them_is_the_solvers(grid):
    problem = ShortestPath(grid)
    paths = all_paths(problem)
    assert len(np.unique(paths, axis=0)) == len(paths) == comb(sum(grid) - 2, grid[0] - 1)
    y = np.random.default_rng(0).uniform(1, 2, size=(50, problem.n_arcs))
    best = paths[(y @ paths.T).argmin(axis=1)]
    assert np.array_equal(best, problem.solve_many(y, None))


def spo_plus_risk(weights, x, y, paths, penalty):
    """The risk in units of the labels' deviation, by the definition."""
    unit = (y - y.mean(axis=0)).std()
    y_hat, best = spo.predict(weights, x), paths[(y @ paths.T).argmin(axis=1)]
    losses = ((y - 2 * y_hat) @ paths.T).max(axis=1) + ((2 * y_hat - y) * best).sum(axis=1)
    return losses.mean() / unit + penalty * np.abs(weights[1:]).sum() / unit


def least_risk(x, y, paths, penalty):
    """The same risk, minimised as a linear program: variables W = U - V and the maxima t."""
    unit, ones = (y - y.mean(axis=0)).std(), np.column_stack([np.ones(len(x)), x])
    y, n, n_paths = y / unit, len(x), len(paths)
    best = paths[(y @ paths.T).argmin(axis=1)]
    margins = np.vstack([np.kron(-2 * row, paths) for row in ones])
    maxima = np.kron(np.eye(n), np.ones((n_paths, 1)))
    slope = (2 * ones.T @ best / n).ravel()
    prices = np.full(slope.size, penalty)
    prices[: paths.shape[1]] = 0
    found = linprog(
        np.concatenate([slope + prices, prices - slope, np.full(n, 1 / n)]),
        A_ub=np.hstack([margins, -margins, -maxima]),
        b_ub=-(y @ paths.T).ravel(),
        bounds=[(0, None)] * 2 * slope.size + [(None, None)] * n,
    )
    return found.fun - (y * best).sum() / n


@pytest.mark.parametrize("seed", [1, 2])
def test_exact_spo_plus_has_the_risk_that_linear_programming_finds(seed):
    domain = small(seed)
    train, paths = domain.splits.train, all_paths(domain.problem)
    penalties = (0.0, 1e-3, 0.05)
    found = spo.spo_plus_weights(train.x, train.y, paths, penalties)
    for weights, penalty in zip(found, penalties, strict=True):
        risk = spo_plus_risk(weights, train.x, train.y, paths, penalty)
        least = least_risk(train.x, train.y, paths, penalty)
        assert least - 1e-7 <= risk <= least + 2e-3


def test_the_data_are_drawn_as_published(monkeypatch):
    monkeypatch.setattr(_tasks, "N_TEST", 50)
    exact = spo.founding_path(1, n=4000, degree=1, noise=0.0).splits
    assert [len(part.y) for part in (exact.train, exact.validation, exact.test)] == [4000, 1000, 50]
    fit = np.linalg.lstsq(np.pad(exact.train.x, ((0, 0), (1, 0)), constant_values=1), exact.train.y)
    assert np.allclose(fit[0][0], 4)  # (B x / sqrt 5 + 3) + 1
    assert set(np.round(fit[0][1:] * np.sqrt(5), 6).ravel()) == {0.0, 1.0}
    noisy = spo.founding_path(1, n=4000, degree=1, noise=0.5).splits.train
    ratio = noisy.y / np.asarray(spo.predict(fit[0], noisy.x))
    assert ratio.min() > 0.499
    assert ratio.max() < 1.501
    assert ratio.mean() == pytest.approx(1, abs=0.01)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    methods = ["least squares", "least squares, all rows", "SPO+", "SPO+, all rows", "forest"]
    trials = spo.plan([CELL], [*methods, "lodl"], {100: (1, 2)})
    return spo.run(trials, tmp_path_factory.mktemp("spo"), cells=SMALL, progress=False)


def test_every_method_has_a_row_of_every_draw_and_only_ours_counts_calls(rows):
    assert len(rows) == 12
    assert all(0 <= row["percent"] < 100 for row in rows)
    assert {row["method"] for row in rows if row["oracle_calls"]} == {"lodl"}


def test_rows_that_are_there_are_not_computed_again(tmp_path):
    run = partial(spo.run, out=tmp_path, cells=SMALL, progress=False)
    trials = [Trial(CELL, "least squares", seed) for seed in (1, 2)]
    first = run(trials[:1])
    assert run(trials)[0] == first[0]
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 2


def test_validation_rows_choose_the_penalty_and_test_rows_do_not(tmp_path):
    def scrambled(seed):
        domain = small(seed)
        test = domain.splits.test
        return replace(
            domain, splits=replace(domain.splits, test=replace(test, y=test.y[::-1].copy()))
        )

    for method in (spo.METHODS["least squares"], spo.METHODS["SPO+"]):
        before, now = method(small(1)), method(scrambled(1))
        assert before.note == now.note != ""
        assert np.array_equal(before.y_hat, now.y_hat)


def row_of(method, percents, cell=CELL, calls=None):
    values = {"task": cell, "method": method, "cpu_seconds": 1.0, "oracle_calls": calls}
    return [
        {**values, "seed": seed, "percent": percent} for seed, percent in enumerate(percents, 1)
    ]


def test_differences_are_paired_by_draw_and_use_the_draws_of_both():
    rows = [*row_of("lodl", [10, 20, 30], calls=250), *row_of("SPO+", [11, 23])]
    found = columns(rows)[CELL]
    gap = found["lodl"].less(found["SPO+"])
    assert (gap.mean, gap.error) == (-2.0, 1.0)
    text = spo.tables(rows)[-1].markdown()
    assert "| -2.0 ± 1.0 | open |" in text
    assert "| 2.0 |" in text  # calls an instance: 250 of 125


def test_a_gap_on_all_draws_is_better_by_holm_and_seconds_have_their_draws():
    rows = [*row_of("lodl", range(10, 20), calls=9), *row_of("SPO+", range(13, 23))]
    rows[0]["percent"] += 0.1
    assert "| better |" in spo.tables(rows)[-1].markdown()
    assert "better in 1 and worse in 0 of all 1" in spo.verdict(rows)[1]
    assert "| 1 (10) | 1 (10) |" in spo.tables(rows)[3].markdown()


def test_regrets_that_differ_by_rounding_alone_are_equal():
    rows = [
        *row_of("lodl", [10.0000001, 11.0000001, 12.0000002], calls=9),
        *row_of("least squares, all rows", [10, 11, 12]),
    ]
    assert "| +0.00 | open |" in spo.tables(rows)[-1].markdown()


def test_the_verdict_counts_published_columns_too():
    rows = [*row_of("lodl", [10, 11, 12], calls=9), *row_of("SPO+", [12, 13, 14])]
    assert "1 of 1 cells" in spo.verdict(rows)[0]
    assert "in 1 of 1 cells from degree 4 on, and worse in 0 of all 1" in spo.verdict(rows)[1]
    published = {("shortest_path", 100, 0.5, 4, "SPO+"): spo.Figure(9.0, 0.1)}
    assert "0 of 1 cells" in spo.verdict(rows, published)[0]
    assert spo.verdict(rows[3:]) == []


def test_published_figures_are_read_and_a_missing_column_is_named(tmp_path):
    path = tmp_path / "published.csv"
    names = "problem,n_train,degree,noise,method,mean_pct,se_pct"
    path.write_text(f"{names}\nshortest_path,100,4,0.5,SPO+,10.35,0.3\nportfolio,100,4,1,SPO+,1,1")
    assert spo.read_published(path) == {
        ("shortest_path", 100, 0.5, 4, "SPO+"): spo.Figure(10.35, 0.3),
        ("portfolio", 100, 1.0, 4, "SPO+"): spo.Figure(1.0, 1.0),
    }
    path.write_text("problem,n_train\nshortest_path,100\n")
    with pytest.raises(DataError, match="must have the columns"):
        spo.read_published(path)
    with pytest.raises(DataError, match="Cannot read"):
        spo.read_published(tmp_path / "missing.csv")


def test_the_command_writes_rows_and_tables(tmp_path, monkeypatch):
    for name, cell in SMALL.items():
        monkeypatch.setitem(spo.CELLS, name, cell)
    quick = spo.Scale((CELL, FLAT), ("least squares", "SPO+"), {100: (1, 2)})
    monkeypatch.setitem(spo.SCALES, "quick", quick)
    command = ["reproduce", "spo", "--draws", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 0
    assert "No row of the learner yet" in result.output
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["method"] for row in rows] == ["least squares"] * 2 + ["SPO+"] * 2
    assert "SPO+, here" in (tmp_path / "spo.md").read_text()
