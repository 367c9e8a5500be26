import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from scipy.optimize import linprog, nnls
from scipy.stats import ttest_rel

from lodl.domains import ShortestPath, Split, newsvendor, shortest_path
from lodl.evaluation import regret
from lodl.report import Trial as FitTrial
from lodl_benchmarks.domains import all_paths
from lodl_benchmarks.pages import holm
from lodl_benchmarks.peers import (
    METHODS,
    SCALES,
    TASKS,
    draw_bill,
    draw_ranks,
    plan,
    run,
    tables,
    write_report,
)
from lodl_benchmarks.peers._counted import counted
from lodl_benchmarks.peers._evaluator import Evaluator
from lodl_benchmarks.peers._loop import Choice, Member, Settings
from lodl_benchmarks.peers._methods import ABLATIONS, BUDGETS, OURS, Method, Outcome, n_looks
from lodl_benchmarks.peers._opt_model import OptModel
from lodl_benchmarks.peers._polytope import adjacent_vertices, binding_normals
from lodl_benchmarks.peers._pyepo import Known, PyEPOLoss
from lodl_benchmarks.peers._standings import standings, verdict
from lodl_benchmarks.peers._summary import (
    Difference,
    complete_methods,
    mean_rank_interval,
    profile,
    ranks,
    scores,
)
from lodl_benchmarks.peers._tasks import LINEAR
from lodl_benchmarks.peers._treatment import Treatment, folds_of
from lodl_benchmarks.runner import Trial
from lodl_benchmarks.surrogates import SPOPlus

pytestmark = pytest.mark.slow

N, N_STEPS = 30, 6
BRIEF = Treatment(
    n_initialisations=2, settings=Settings(n_steps=N_STEPS, look_every=3, patience=100)
)
small_path = partial(shortest_path, sizes=(24, 6, 20), grid=(3, 3))
SMALL = {
    "path-100-6": replace(TASKS["path-100-6"], build=small_path, treatment=BRIEF),
    "newsvendor": replace(
        TASKS["newsvendor"],
        build=partial(newsvendor, sizes=(24, 6, 20), n_products=3),
        treatment=BRIEF,
    ),
}
FEW = ("2-stage", "SPO+", "PFYL", "lsLTR")


def run_small(trials, out, **options):
    return run(trials, out, **{"tasks": SMALL, "progress": False, **options})


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    trials = [Trial("path-100-6", method, seed) for seed in (1, 2) for method in FEW]
    return run_small(trials, tmp_path_factory.mktemp("peers"))


def test_a_counted_solver_decides_as_before_and_books_every_call_once():
    domain = small_path(1)
    problem, ledger = counted(domain.problem)
    y = domain.splits.test.y
    assert np.array_equal(problem.solve_many(y, None), domain.problem.solve_many(y, None))
    problem.solve(y[0], None)  # asks `solve_many` itself
    with ledger.purpose("looks"):
        problem.solve_many(y[:3], None)
    assert ledger.calls == {"training": len(y) + 1, "looks": 3}
    assert ledger.seconds["training"] > 0
    assert problem.sense == "min"


@pytest.mark.parametrize("build", [task.build for task in SMALL.values()])
def test_the_evaluator_agrees_with_regret(build):
    domain = build(1)
    part = domain.splits.test
    y_hat = part.y[::-1].copy()
    found = Evaluator.of(domain.problem, part).regret(y_hat, np.arange(len(part.y)))
    assert np.allclose(found, regret(domain.problem, y_hat, part.y))


def test_folds_hold_out_every_instance_once():
    folds = folds_of(N, 3, seed=1)
    assert np.array_equal(np.sort(np.concatenate([part for _, part in folds])), np.arange(N))
    assert all(len(np.intersect1d(rows, part)) == 0 for rows, part in folds)


def test_calls_are_those_of_all_models_and_looks_stand_apart(rows):
    by_method = {row["method"]: row for row in rows if row["seed"] == 1}
    n_models = 3 * 2 * 2 * 2  # folds, models to average, learning rates, starts
    n_looks = 3 * N * 2 * 2 * 2  # at 0, 3 and 6 steps
    at_labels, choosing = N, 4 * N  # optimal decisions; those of the averages, for each choice
    spo_plus = by_method["SPO+"]
    in_folds, of_one = n_models * N_STEPS * 20, spo_plus["n_steps"] * N
    assert spo_plus["oracle_calls"] == N + in_folds + 2 * of_one
    assert spo_plus["calls_of_one"] == of_one
    assert spo_plus["looks"] == at_labels + n_looks + choosing
    assert by_method["2-stage"]["oracle_calls"] == 0
    assert by_method["2-stage"]["looks"] == at_labels + n_looks + choosing
    of_one = by_method["PFYL"]["calls_of_one"]
    assert by_method["PFYL"]["oracle_calls"] == N + 2 * in_folds + 2 * of_one  # two parameters


def test_one_model_of_spo_plus_calls_the_solver_once_an_instance_and_epoch(tmp_path):
    trials = [Trial("path-100-6", f"SPO+, {n} epochs", 1) for n in (5, 50)]
    few, many = run_small(trials, tmp_path)
    assert [row["calls_of_one"] for row in (few, many)] == [5 * N, 50 * N]
    assert few["oracle_calls"] == N + 5 * N  # labels, then epochs
    assert few["looks"] == N  # the harness, for the scale of regrets
    assert few["test"] != many["test"]


def test_rows_that_are_there_are_not_computed_again(tmp_path):
    trials = [Trial("path-100-6", "2-stage", seed) for seed in (1, 2)]
    first = run_small(trials[:1], tmp_path)
    assert run_small(trials, tmp_path)[0] == first[0]
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 2
    longer = replace(BRIEF, settings=Settings(n_steps=7))
    changed = {"path-100-6": replace(SMALL["path-100-6"], treatment=longer)}
    run_small(trials[:1], tmp_path, tasks=changed)
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 3


def test_every_method_is_given_the_same_data_and_no_test_label(tmp_path):
    seen = []

    class Spy(Method):
        def __init__(self, name):
            self.name = name

        def __repr__(self):
            return self.name

        def run(self, data, treatment, x_test):
            seen.append((data, x_test))
            return Outcome(np.zeros((len(x_test), *data.y.shape[1:])))

    trials = [Trial("path-100-6", name, 1) for name in "ab"]
    run_small(trials, tmp_path, methods={"a": Spy("a"), "b": Spy("b")})
    (one, x_one), (other, x_other) = seen
    given = small_path(1).splits.train_and_validation
    assert np.array_equal(one.y, given.y)
    assert np.array_equal(one.x, other.x)
    assert np.array_equal(x_one, x_other)
    assert np.array_equal(one.evaluator.part.y, given.y)


def test_test_labels_change_neither_choices_nor_calls(rows, tmp_path):
    def scrambled(seed):
        domain = small_path(seed)
        test = domain.splits.test
        splits = replace(domain.splits, test=Split(test.x, test.y[::-1].copy()))
        return replace(domain, splits=splits)

    tasks = {"path-100-6": replace(SMALL["path-100-6"], build=scrambled)}
    names = ("learning_rate", "start", "parameter", "n_steps", "held_out", "oracle_calls", "looks")
    for method in ("SPO+", "lsLTR"):
        (now,) = run_small([Trial("path-100-6", method, 1)], tmp_path, tasks=tasks)
        (before,) = (row for row in rows if row["method"] == method and row["seed"] == 1)
        assert [now[name] for name in names] == [before[name] for name in names]
        assert now["test"] != before["test"]


@pytest.fixture(scope="module")
def known():
    domain = small_path(1)
    part = domain.splits.train_and_validation
    return domain.problem, part.y, Known.of(part.y, domain.problem.solve_many(part.y, None), 1.0)


def members(n, parameter):
    rows = np.array_split(np.arange(N), n)
    return [
        Member(train, train[:0], Choice(0.1, "random", parameter), seed)
        for seed, train in enumerate(rows)
    ]


def test_spo_plus_of_pyepo_in_one_batch_is_our_own(known):
    problem, y, facts = known
    criterion = PyEPOLoss("SPOPlus", given="all").build(problem, facts, y.shape[1:], 1.0)
    y_hat, rows = torch.as_tensor(y[::-1].copy())[None], torch.arange(N)[None]
    losses = criterion(members(1, None))(y_hat, rows, [0])
    ours = SPOPlus(problem, y)(y_hat, rows[0])
    assert torch.allclose(losses, ours)


def test_one_batch_gives_what_pyepo_finds_one_by_one(known):
    from pyepo import func

    problem, y, facts = known
    loss = PyEPOLoss("PFY", "sigma", fixed=(("n_samples", 2),), is_seeded=True)
    criterion = loss.build(problem, facts, y.shape[1:], 1.0)(members(1, 0.5))
    y_hat, rows = torch.as_tensor(y[::-1].copy()), torch.arange(N)
    model = OptModel(problem, y.shape[1])
    alone = func.PFY(model, n_samples=2, sigma=0.5, seed=0, reduction="none")
    assert torch.allclose(criterion(y_hat[None], rows[None], [0])[0], alone(y_hat, facts.decisions))


def test_a_pool_knows_the_decisions_of_its_own_instances_only(known):
    problem, y, facts = known
    loss = PyEPOLoss("NCE", "solve_ratio", has_pool=True)
    of_each = members(3, 0.0)
    criterion = loss.build(problem, facts, y.shape[1:], 1.0)(of_each)
    for (m,), module in criterion.modules.items():
        own = torch.unique(facts.decisions[torch.as_tensor(of_each[m].train)], dim=0)
        assert torch.equal(module.solpool, own)


def test_methods_that_need_linearity_stay_away_from_other_objectives():
    trials = plan(["newsvendor"], list(METHODS), [1])
    assert {trial.method for trial in trials} == {
        "2-stage",
        OURS,
        "DirectedWeightedMSE",
        "ConvexDirectedQuadratic",
    }
    assert not any(TASKS[name].hidden or not TASKS[name].is_linear for name in LINEAR)


def test_our_learner_has_a_row_where_others_cannot_enter(tmp_path):
    (row,) = run_small([Trial("newsvendor", OURS, 1)], tmp_path)
    assert row["oracle_calls"] > row["looks"] > 0
    n_calls = row["oracle_calls"] + row["looks"]  # a few test whether the objective is affine
    assert n_calls == pytest.approx(row["history"][-1][-1], abs=10)


def test_calls_that_only_compare_models_are_looks():
    calls = [
        25,
        26,
        30,
        31,
        32,
    ]  # about an instance: labels and a round, a look, a round, two looks
    history = [FitTrial("", 0, 0.0, 10 * n, 0.0) for n in calls]
    assert n_looks(history, 10) == 30


def test_a_difference_is_paired_and_has_the_error_of_seeds_or_of_instances():
    apart = np.array([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]])
    assert Difference.of(apart) == Difference(1.5, 0.5, 2)
    noisy = np.array([[0.0, 2.0, 1.0]])
    assert Difference.of(noisy).error == pytest.approx(np.sqrt(1 / 3))


def test_the_p_value_is_that_of_a_paired_t_test_over_seeds():
    one, other = np.random.default_rng(0).normal(size=(2, 6))
    blocks = np.repeat((one - other)[:, None], 4, axis=1)
    assert Difference.of(blocks).p_value == pytest.approx(ttest_rel(one, other).pvalue)
    assert Difference.of(np.array([[1.0, 2.0]])).p_value == 1.0


def test_holm_multiplies_by_the_tests_that_are_left_and_keeps_the_order():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])
    assert len(holm([])) == 0


def test_a_difference_that_survives_the_correction_is_named(rows):
    ours = [as_ours(row, 0.0) for row in rows if row["method"] == "SPO+"]
    flat = [{**row, "test_blocks": [1.0 + row["seed"] / 1e4] * 20} for row in [*rows, *ours]]
    flat = [as_ours(row, 0.5) if row["method"] == OURS else row for row in flat]
    (line,) = table_of(flat, "Paired").rows
    assert [cell.text for cell in line][5::5] == ["better", "better"]
    same = [as_ours(row, 1.0) for row in rows if row["method"] == "SPO+"]
    (line,) = table_of([*rows, *same], "Paired").rows
    assert line[5].text == "open"


def test_ranks_begin_with_the_least_regret(rows):
    found = scores(rows)
    (of_task,) = found.values()
    places = ranks(found, FEW)
    best = min(of_task.values(), key=lambda score: score.regret)
    assert places[best.method] == [1.0]


def test_a_profile_holds_the_factors_to_the_best_of_each_task(rows):
    found = scores([*rows, *({**row, "task": "path-100-4"} for row in rows)])
    ratios, places = profile(found, FEW), ranks(found, FEW)
    assert all(values.shape == (2,) and (values >= 1).all() for values in ratios.values())
    for method in FEW:
        assert (ratios[method] == 1).any() == (places[method] == 1).any()


def test_the_interval_of_a_mean_rank_holds_the_mean_and_shrinks_to_it():
    low, high = mean_rank_interval(np.array([1.0, 2.0, 4.0]))
    assert 1 <= low < 7 / 3 < high <= 4
    assert mean_rank_interval(np.array([2.0, 2.0])) == (2.0, 2.0)


def test_the_picture_of_ranks_names_the_complete_methods_alone(rows):
    fewer = [row for row in rows if row["method"] != "PFYL" or row["seed"] == 1]
    assert complete_methods(scores(fewer)) == [name for name in FEW if name != "PFYL"]
    profiles, places = draw_ranks(fewer).axes
    for line in profiles.lines:  # a method worse than the largest factor does not reach 1
        worst = profile(scores(fewer), complete_methods(scores(fewer)))[str(line.get_label())].max()
        assert (np.asarray(line.get_ydata())[-1] == 1) == (worst <= profiles.get_xlim()[1])
    shown = {text.get_text() for text in profiles.get_legend().get_texts()}
    assert shown == {label.get_text() for label in places.get_yticklabels()} == {*FEW} - {"PFYL"}


def test_regrets_are_compared_on_the_seeds_that_both_have(rows):
    fewer = [row for row in rows if row["method"] != "SPO+" or row["seed"] == 1]
    (of_task,) = scores(fewer).values()
    (before,) = scores(rows).values()
    assert of_task["SPO+"].less(of_task["2-stage"]).n_seeds == 1
    assert before["2-stage"].on([1]).regret == pytest.approx(
        of_task["2-stage"].on(of_task["SPO+"].blocks).regret
    )
    ranked = table_of(fewer, "Ranks")
    assert not any("SPO+" in row[0].text for row in ranked.rows)


def table_of(rows, caption):
    (found,) = (table for table in tables(rows) if table.caption.startswith(caption))
    return found


def test_the_table_of_a_task_shows_every_method_but_variants_of_ours(rows):
    variant = [{**row, "method": "lodl, no rounds"} for row in rows if row["method"] == "SPO+"]
    shown = tables([*rows, *variant])[-1]
    assert {row[0].text for row in shown.rows} == set(FEW)


def as_ours(row, factor):
    """A row of our learner, with a share of another one's regret."""
    blocks = [factor * value for value in row["test_blocks"]]
    return {**row, "method": OURS, "test_blocks": blocks, "oracle_calls": 50, "looks": 9}


def test_a_standing_is_told_from_the_seeds_of_our_learner(rows):
    seeds = [row for row in rows if row["method"] == "SPO+"]
    (best,) = standings(scores([*rows, *(as_ours(row, 0.0) for row in seeds)]))
    assert best.is_best
    assert best.reaches_reference
    assert best.ratio == pytest.approx(np.mean([row["oracle_calls"] for row in seeds]) / 50)
    worse = scores([*rows, as_ours(seeds[0], 9.0)])
    assert len(standings(worse)[0].two_stage.blocks) == 1
    assert [line.count("0 of 1") for line in verdict(worse)] == [1, 1, 1]
    assert verdict(scores(rows)) == []


def many(rows, factor, method, calls):
    """Rows of a method with a share of SPO+'s regret."""
    return [
        {**as_ours(row, factor), "method": method, "oracle_calls": calls}
        for row in rows
        if row["method"] == "SPO+"
    ]


def test_one_model_is_compared_with_our_learner_or_its_largest_budget_with_no_more_calls(rows):
    ours = [*many(rows, 0.5, OURS, 600), *many(rows, 0.7, "lodl, 2 calls", 60)]
    ours += many(rows, 0.8, "lodl, 5 calls", 610)
    one = [*many(rows, 0.6, "SPO+, 20 epochs", 630), *many(rows, 0.9, "SPO+, 5 epochs", 150)]
    (line,) = table_of([*rows, *ours, *one], "lodl less one model").rows
    few, at_20 = line[1:4], line[7:10]
    assert (few[0].value < 0, few[1].text[:3], few[2].text[:4]) == (True, "69;", "150;")
    assert (at_20[0].value < 0, at_20[1].text[:4], at_20[2].text[:4]) == (True, "609;", "630;")
    assert [cell.text for cell in line[4:7]] == ["", "", ""]  # not run


def test_the_bill_adds_the_price_of_calls_to_the_seconds_outside_the_solver(rows):
    ours = [
        {**row, "cpu_seconds": 5.0, "cpu_seconds_solving": 1.0} for row in many(rows, 0.5, OURS, 91)
    ]
    (line,) = (row for row in table_of([*rows, *ours], "The bill").rows if row[0].text == OURS)
    assert line[3].text == "1.0"  # 91 calls and 9 looks at 100 instances
    assert [cell.text for cell in line[4:]] == ["5", "4", "4.1", "14"]


def test_the_ablation_pairs_each_variant_with_all_parts(rows):
    variants = [*many(rows, 1.0, OURS, 50), *many(rows, 2.0, "lodl, one loss", 40)]
    line, mean = table_of([*rows, *variants], "Ablation").rows
    assert line[3].value == pytest.approx(line[1].value)
    assert [mean[1].text, mean[3].text] == ["1", "2.000"]


def test_variants_of_ours_are_no_rivals(rows):
    found = scores([*rows, *many(rows, 1.0, OURS, 50), *many(rows, 0.0, "lodl, one loss", 40)])
    (standing,) = standings(found)
    assert standing.best.method in FEW
    assert "lodl, one loss" not in complete_methods(found)


def test_the_picture_has_a_panel_for_calls_and_one_for_each_price(rows):
    several = [
        row
        for n, name in enumerate((OURS, "lodl, 1 calls", "lodl, 5 calls", "SPO+, 5 epochs"))
        for row in many(rows, 0.5 + n, name, (900, 50, 900, 99)[n])
    ]
    figure = draw_bill([*rows, *several])
    assert [axes.get_xlabel() for axes in figure.axes] == [
        "solver calls an instance",
        *(f"CPU s at {price} a call" for price in ("1 µs", "1 ms", "100 ms")),
    ]
    names = [text.get_text() for text in figure.axes[0].texts]  # 5 calls: as many as the default
    assert sorted([OURS, "1", "5", "SPO+", "PFYL", "lsLTR"]) == sorted(names)


@pytest.mark.parametrize("name", [*BUDGETS, *ABLATIONS])
def test_variants_of_our_learner_have_rows(tmp_path, name):
    (row,) = run_small([Trial("path-100-6", name, 1)], tmp_path)
    assert 0 <= row["test"] < 1
    if name in BUDGETS:
        assert row["oracle_calls"] + row["looks"] <= BUDGETS[name].calls * N + 20


@pytest.mark.parametrize("grid", [(2, 2), (3, 3), (3, 4)])
def test_paths_are_adjacent_if_no_other_path_has_a_part_in_their_middle(grid):
    problem = ShortestPath(grid)
    paths = all_paths(problem)
    y = np.random.default_rng(0).uniform(1, 2, size=(4, problem.n_arcs))
    for label, steps in zip(y, adjacent_vertices(problem, y), strict=True):
        best = paths[(paths @ label).argmin()]
        near = {tuple(best - step) for step in steps if step.any()}
        for other in paths:
            if not np.array_equal(other, best):
                price = -np.array(
                    [float(p not in (tuple(best), tuple(other))) for p in map(tuple, paths)]
                )
                system = np.vstack([paths.T, np.ones(len(paths))])
                middle = np.append((best + other) / 2, 1)
                others = -linprog(price, A_eq=system, b_eq=middle).fun
                assert (tuple(other) in near) == (others < 1e-8)


def test_the_negative_label_is_in_the_cone_of_the_binding_normals():
    problem = ShortestPath((4, 4))
    y = np.random.default_rng(0).uniform(1, 2, size=(5, problem.n_arcs))
    normals = binding_normals(problem, y)
    assert all(nnls(a.T, -label)[1] < 1e-9 for a, label in zip(normals, y, strict=True))
    moved = y.copy()
    moved[:, 0] = 100.0  # no best path has the first arc now
    first = [nnls(a.T, -label)[1] < 1e-9 for a, label in zip(normals, moved, strict=True)]
    has_arc = problem.solve_many(y, None)[:, 0] > 0
    assert np.array_equal(first, ~has_arc)


@pytest.mark.parametrize("method", ["LAVA", "CaVE"])
def test_methods_without_the_solver_learn_from_the_best_decisions_alone(tmp_path, method):
    (row,) = run_small([Trial("path-100-6", method, 1)], tmp_path)
    assert row["oracle_calls"] == N  # the labels' decisions
    assert row["test"] < 1


def test_the_page_shows_verdict_picture_and_tables(rows, tmp_path):
    ours = [as_ours(row, 0.9) for row in rows if row["method"] == "SPO+"]
    lines = (json.dumps(row) for row in [*rows, *ours])
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    page = write_report(tmp_path).read_text()
    assert "within one standard error of the best on" in page
    assert "Oracle calls to reach the regret of SPO+" in page
    assert page.count("<svg") == 2
    assert "5 methods on 1 task, 2 seeds" in page


def test_a_scale_says_how_many_models_are_averaged():
    for scale in SCALES.values():
        task = TASKS[scale.tasks[0]].averaging(scale.n_initialisations)
        assert task.treatment.n_initialisations == scale.n_initialisations
    assert not set(SCALES["quick"].seeds) & set(SCALES["full"].seeds)
