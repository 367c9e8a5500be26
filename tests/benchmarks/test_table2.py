from dataclasses import replace
from functools import partial

import pytest

from lodl.benchmarks import (
    METHODS,
    SCALES,
    SETUPS,
    ScaleOfRun,
    learned_experiments,
    quality_json,
    run,
    table1_experiments,
    table2a_experiments,
    table2a_info,
    table2a_markdown,
    table2b_experiments,
    table2b_info,
    table2b_markdown,
)
from lodl.domains import web_advertising
from lodl.oracle import open_samples
from lodl.paper import MeanStd

LEARNED = [name for name, method in METHODS.items() if method.needs_samples]


def row(method, **fields):
    seconds = {f"seconds_{part}": 1.0 for part in ("sampling", "fitting", "training")}
    sampled = {"sampler": "AllPerturbed(0.1)", "n_samples": 5000, "oracle_calls": 10}
    return {"method": method, "test": [0.5, 0.7], **sampled, **seconds, **fields}


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
def test_rows_of_table_1_are_taken_over(experiments):
    def identities(plan):
        return {(replace(e, sampler=None), e.sampler_name) for e in plan}

    shared = identities(learned_experiments(SCALES["paper"], domains=["web"]))
    assert shared < identities(experiments(SCALES["paper"]))
    assert shared < identities(table1_experiments(SCALES["paper"]))


@pytest.mark.parametrize(
    ("n_samples", "expected"), [(5000, [50, 500, 5000]), (2000, [50, 500, 2000]), (50, [50])]
)
def test_numbers_of_samples_are_the_papers_as_far_as_the_scale_goes(n_samples, expected):
    plan = table2b_experiments(ScaleOfRun(n_seeds=1, n_initialisations=1, n_samples=n_samples))
    assert [e.n_samples for e in plan] == [n for n in expected for _ in LEARNED]


def test_fewer_samples_are_the_first_of_the_one_store_of_a_seed(small, tmp_path):
    plan = [
        e
        for e in table2b_experiments(ScaleOfRun(1, 2, 60), small)
        if e.method in ("WeightedMSE", "Quadratic")
    ]
    rows = run(plan, tmp_path / "both", setups=small, progress=False)
    few = run(plan[:2], tmp_path / "few", setups=small, progress=False)
    (store,) = (tmp_path / "both" / "samples").iterdir()
    domain = small["web"].build(0)
    samples = open_samples(
        store, domain.problem, domain.splits.train_and_validation.y, sampler=plan[0].sampler
    )
    assert samples.n_samples == 60
    assert [row["oracle_calls"] for row in rows] == [6 * 51, 6 * 51, 6 * 61, 6 * 61]
    assert [row["test"] for row in rows[:2]] == [row["test"] for row in few]
    assert [row["gaussian_error"] for row in rows[:2]] == [row["gaussian_error"] for row in few]


def test_table_2a_shows_samplers_side_by_side_with_the_papers():
    rows = [row("Quadratic", sampler="TwoPerturbed(0.1)"), row("NN", sampler="OnePerturbed(0.1)")]
    rows += [row("ConvexDirectedQuadratic", sampler="AllPerturbed(0.1)", test=[1.0])]
    cells = table2a_info(rows)
    assert cells["Quadratic", "TwoPerturbed"].paper == MeanStd(0.88, 0.10)
    assert table2a_markdown(cells).splitlines() == [
        "| loss | 1-perturbed | 2-perturbed | all-perturbed |",
        "| --- | --- | --- | --- |",
        "| NN | 0.60 ± 0.10 (0.86 ± 0.12) * |  |  |",
        "| Quadratic |  | 0.60 ± 0.10 (0.88 ± 0.10) * |  |",
        "| ConvexDirectedQuadratic |  |  | 1.00 ± 0.00 |",
    ]


def test_table_2b_compares_with_the_paper_only_at_the_same_number_of_samples():
    cells = table2b_info([row("Quadratic", n_samples=n) for n in (2000, 50)])
    assert table2b_markdown(cells).splitlines() == [
        "| loss | 50 samples | 2,000 samples |",
        "| --- | --- | --- |",
        "| Quadratic | 0.60 ± 0.10 (0.68 ± 0.17) | 0.60 ± 0.10 |",
    ]


def test_cells_are_json_values():
    info = quality_json(table2b_info([row("Quadratic", n_samples=50)]))
    (cell,) = info["cells"]
    assert info["kind"] == "quality"
    assert cell == {
        "method": "Quadratic",
        "column": 50,
        "ours": {"mean": pytest.approx(0.6), "std": pytest.approx(0.1)},
        "n_runs": 2,
        "paper": {"mean": 0.68, "std": 0.17},
        "sampler": "AllPerturbed(0.1)",
        "n_samples": 50,
        "oracle_calls": 10.0,
        "seconds": {"sampling": 1.0, "fitting": 1.0, "training": 1.0},
    }
