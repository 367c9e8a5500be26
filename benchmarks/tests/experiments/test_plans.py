from dataclasses import replace
from functools import partial

import pytest

from lodl.oracle import Oracle
from lodl_benchmarks.domains import web_advertising
from lodl_benchmarks.experiments import (
    SCALES,
    SETUPS,
    TABLE3_SCALES,
    RunSize,
    learned_experiments,
    table1_experiments,
    table2a_experiments,
    table2b_experiments,
    table3_experiments,
)
from lodl_benchmarks.runner import METHODS, run

DECISIONS = [name for name, method in METHODS.items() if method.needs_slopes]
LEARNED = [n for n, method in METHODS.items() if method.needs_samples and n not in DECISIONS]


@pytest.fixture
def small():
    """The setups with a small Web Advertising."""
    web = SETUPS["web"]
    return {
        "web": replace(
            web,
            build=partial(web_advertising, sizes=(4, 2, 10)),
            training=replace(web.training, n_steps=5),
        )
    }


def test_every_sampler_has_the_noise_of_the_setup_and_every_learned_loss_a_row():
    plan = table2a_experiments(SCALES["paper"])
    scale = SETUPS["web"].sampler.scale
    names = [f"{name}({scale})" for name in ("OnePerturbed", "TwoPerturbed", "AllPerturbed")]
    assert [e.sampler_name for e in plan] == [name for name in names for _ in range(60)]
    assert {e.method for e in plan} == set(LEARNED)
    assert {e.domain for e in plan} == {"web"}


@pytest.mark.parametrize("experiments", [table2a_experiments, table2b_experiments])
def test_rows_of_table_1_are_shared(experiments):
    def identities(plan):
        return {(replace(e, sampler=None), e.sampler_name) for e in plan}

    shared = identities(learned_experiments(SCALES["paper"], {"web": SETUPS["web"]}))
    assert shared < identities(experiments(SCALES["paper"]))
    assert shared < identities(table1_experiments(SCALES["paper"]))


@pytest.mark.parametrize(
    ("n_samples", "expected"), [(5000, [50, 500, 5000]), (2000, [50, 500, 2000]), (50, [50])]
)
def test_numbers_of_samples_are_the_papers_as_far_as_the_scale_goes(n_samples, expected):
    plan = table2b_experiments(RunSize(n_seeds=1, n_initialisations=1, n_samples=n_samples))
    fitted = [e.n_samples for e in plan if e.method in LEARNED]
    assert fitted == [n for n in expected for _ in LEARNED]


def test_decision_families_have_few_samples_of_their_own():
    size = SCALES["paper"]
    of_table1 = [e for e in table1_experiments(size) if e.method in DECISIONS]
    assert {e.n_samples for e in of_table1} == {20, 50}
    of_table2b = [e for e in table2b_experiments(size) if e.method in DECISIONS]
    assert [e.n_samples for e in of_table2b] == [n for n in (20, 50, 500) for _ in range(20)]
    assert not {e.method for e in learned_experiments(size)} & set(DECISIONS)
    of_table3 = [e for e in table3_experiments(size) if e.method in DECISIONS]
    assert of_table3 == of_table1


def test_fewer_samples_are_the_first_of_the_one_store_of_a_seed(small, tmp_path):
    plan = [
        e
        for e in table2b_experiments(RunSize(1, 2, 60), small)
        if e.method in ("WeightedMSE", "Quadratic")
    ]
    rows = run(plan, tmp_path / "both", setups=small, progress=False)
    few = run(plan[:2], tmp_path / "few", setups=small, progress=False)
    (store,) = (tmp_path / "both" / "samples").iterdir()
    domain = small["web"].build(0)
    y = domain.splits.train_and_validation.y
    oracle = Oracle(domain.problem, store=store)
    instances = oracle.instances(y, keys=range(len(y)))
    assert oracle.sample(instances, plan[0].sampler, 60).n_calls == 6 * 61
    assert oracle.n_calls <= 32  # the verification
    assert [row.oracle_calls for row in rows] == [6 * 51, 6 * 51, 6 * 61, 6 * 61]
    assert [row.test for row in rows[:2]] == [row.test for row in few]
    assert [row.gaussian_error for row in rows[:2]] == [row.gaussian_error for row in few]


def test_the_paper_scale_has_a_hundred_runs_of_every_cell():
    plan = table1_experiments(SCALES["paper"])
    assert len(plan) == 10 * (len(METHODS) + len(DECISIONS)) * len(SETUPS)
    assert all(e.n_initialisations == 10 for e in plan)
    assert all(e.n_samples == 5000 for e in plan if e.method not in DECISIONS)
    assert len({(e.domain, e.method, e.n_samples, e.seed) for e in plan}) == len(plan)


def test_the_paper_scale_of_table_3_shares_the_rows_of_table_1():
    assert TABLE3_SCALES["paper"] == SCALES["paper"]
