import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from lodl.errors import InvalidInputError
from lodl.losses import Quadratic, WeightedMSE
from lodl.samplers import AllPerturbed, AtPredictions
from lodl.training.torch import TrainingSettings
from lodl_benchmarks.domains import linear_model
from lodl_benchmarks.runner import METHODS, Experiment, Learned, RowsFile, Setup, run
from lodl_benchmarks.runner._experiment import recorded_settings
from lodl_benchmarks.surrogates import SoftTopK

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SMALL = Setup(
    title="small",
    build=partial(linear_model, sizes=(6, 4, 8), n_items=5),
    sampler=AllPerturbed(1.0),
    samplers=(AllPerturbed(1.0),),
    surrogate=SoftTopK(k=1),
    surrogates=(SoftTopK(k=1),),
    training=TrainingSettings(learning_rate=0.1, n_steps=20),
    learning_rates=(0.1,),
)


def experiment(method, seed=0, n_samples=60):
    return Experiment("small", method, seed, 2, n_samples, 0.1, SMALL.sampler, SMALL.surrogate)


def run_small(plan, out, **options):
    return run(plan, out, setups={"small": SMALL}, progress=False, **options)


def raw(out):
    """Return the rows of a folder as they stand in the file."""
    return [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_a_row(method, tmp_path):
    (row,) = run_small([experiment(method)], tmp_path)
    assert row.method == method
    assert np.isfinite(row.test).all()
    assert raw(tmp_path)[0]["seconds"] > 0
    assert row.setting("sampler") == "AllPerturbed(1.0)"
    assert (row.oracle_calls > 0) == (method == "DFL" or METHODS[method].needs_samples)


def test_optimal_is_one_and_random_is_near_zero(tmp_path):
    optimal, random = run_small([experiment("Optimal"), experiment("Random")], tmp_path)
    assert optimal.test == (pytest.approx(1.0),)
    assert len(random.test) == 2
    assert np.abs(random.test).max() < 0.9


def test_rows_that_are_there_are_not_computed_again(tmp_path):
    first = run_small([experiment("2-stage")], tmp_path)
    both = run_small([experiment("Constant"), experiment("2-stage")], tmp_path)
    assert both[1] == first[0]
    assert len(raw(tmp_path)) == 2


def test_another_domain_of_the_same_name_makes_another_row(tmp_path):
    larger = replace(SMALL, build=partial(linear_model, sizes=(6, 4, 8), n_items=9))
    run_small([experiment("Constant")], tmp_path)
    run([experiment("Constant")], tmp_path, setups={"small": larger}, progress=False)
    assert len(raw(tmp_path)) == 2


def test_the_last_digits_of_the_data_which_depend_on_the_cpu_make_no_other_row(tmp_path):
    def nearly(seed):
        domain = SMALL.build(seed)
        train = replace(domain.splits.train, y=np.nextafter(domain.splits.train.y, np.inf))
        return replace(domain, splits=replace(domain.splits, train=train))

    first = run_small([experiment("Constant")], tmp_path)
    setups = {"small": replace(SMALL, build=nearly)}
    assert run([experiment("Constant")], tmp_path, setups=setups, progress=False) == first


def test_a_row_of_another_version_is_computed_again(tmp_path, monkeypatch):
    run_small([experiment("Constant")], tmp_path)
    monkeypatch.setattr(
        "lodl_benchmarks.runner._complete_rows.version", lambda name: f"{name} of tomorrow"
    )
    run_small([experiment("Constant")], tmp_path)
    assert len(raw(tmp_path)) == 2


def test_surrogate_calls_are_counted_by_the_batches(tmp_path):
    batches = replace(SMALL, training=replace(SMALL.training, batch_size=2, validate_every=6))
    (row,) = run([experiment("DFL")], tmp_path, setups={"small": batches}, progress=False)
    assert row.oracle_calls == 2 * (20 * 2 + 5 * 4)  # 20 steps, looks at 0, 6, 12, 18 and 20


def test_surrogate_calls_of_models_that_have_stopped_are_not_counted(tmp_path):
    calls = []

    class Counted(SoftTopK):
        def __call__(self, y_hat, context=None):
            calls.append(y_hat.shape[:2])
            return super().__call__(y_hat, context)

    impatient = replace(SMALL.training, n_steps=200, validate_every=3, patience=4, batch_size=4)
    setup = replace(SMALL, surrogate=Counted(k=1), training=impatient)
    plan = [replace(experiment("DFL"), surrogate=setup.surrogate)]
    (row,) = run(plan, tmp_path, setups={"small": setup}, progress=False)
    assert len({n_models for n_models, _ in calls}) > 1  # one stopped before the other
    assert row.oracle_calls == sum(n_models * n for n_models, n in calls)


def test_a_surrogate_counts_only_for_the_method_that_uses_it(tmp_path):
    other = SoftTopK(k=1, epsilon=0.5)
    for method in ("Constant", "DFL"):
        first, second = (
            run_small([replace(experiment(method), surrogate=surrogate)], tmp_path)[0]
            for surrogate in (SMALL.surrogate, other)
        )
        assert (first == second) == (method == "Constant")
    assert first.setting("surrogate") == repr(SMALL.surrogate)


def test_a_row_that_names_a_surrogate_it_has_no_use_for_is_not_computed_again(tmp_path):
    (row,) = run_small([experiment("Constant")], tmp_path / "new")
    assert row.setting("surrogate") == ""
    (values,) = raw(tmp_path / "new")
    RowsFile(tmp_path / "rows.jsonl").append(values | {"surrogate": "SoftTopK(k=1, epsilon=9)"})
    (found,) = run_small([experiment("Constant")], tmp_path)
    assert found.setting("surrogate") == "SoftTopK(k=1, epsilon=9)"


def test_other_settings_make_another_row(tmp_path):
    run_small([experiment("Optimal")], tmp_path)
    run_small([experiment("Optimal", seed=1)], tmp_path)
    run_small([experiment("Optimal", n_samples=70)], tmp_path)
    assert len(raw(tmp_path)) == 3


def test_two_workers_give_the_rows_of_one(tmp_path):
    plan = [experiment(method) for method in ("2-stage", "WeightedMSE")]
    one = run_small(plan, tmp_path / "one", n_jobs=1)
    two = run_small(plan, tmp_path / "two", n_jobs=2)
    assert [replace(row, seconds=()) for row in one] == [replace(row, seconds=()) for row in two]


def test_a_learned_loss_is_fitted_once_for_all_learning_rates(tmp_path):
    plan = [replace(experiment("Quadratic"), learning_rate=rate) for rate in (0.1, 0.01)]
    run_small(plan, tmp_path)
    assert len(list((tmp_path / "losses").iterdir())) == 1
    first, second = raw(tmp_path)
    assert first["seconds_fitting"] == second["seconds_fitting"] > 0
    assert first["best_steps"] != second["best_steps"]


def test_families_share_the_samples_of_a_seed(tmp_path):
    plan = [experiment(m, n_samples=n) for m, n in [("WeightedMSE", 20), ("Quadratic", 60)]]
    rows = run_small(plan, tmp_path)
    assert len(list((tmp_path / "samples").iterdir())) == 1
    assert [row.oracle_calls for row in rows] == [10 * 21, 10 * 61]
    few, many = (dict(row.seconds)["sampling"] for row in rows)
    assert few == pytest.approx(many * 21 / 61)


def test_a_learned_row_says_how_faithful_its_loss_is(tmp_path):
    learned, two_stage = run_small([experiment("Quadratic"), experiment("2-stage")], tmp_path)
    assert learned.gaussian_error > 0
    assert len(learned.empirical_error) == 2  # initialisations
    assert min(learned.empirical_error) > 0
    assert (two_stage.gaussian_error, two_stage.empirical_error) == (None, ())


@pytest.mark.parametrize(
    "samplers",
    [
        [AllPerturbed(np.full(5, 0.5)), AllPerturbed(np.linspace(0.1, 1, 5))],
        [
            AtPredictions(np.zeros((10, 5)), 0.5, n_exact=0),
            AtPredictions(np.ones((10, 5)), 0.5, n_exact=0),
        ],
    ],
    ids=["scales", "centres"],
)
def test_samplers_of_one_kind_make_rows_of_their_own(samplers, tmp_path):
    plan = [replace(experiment("WeightedMSE"), sampler=sampler) for sampler in samplers]
    first, second = run_small(plan, tmp_path)
    assert first.setting("sampler") != second.setting("sampler")
    assert first.gaussian_error != second.gaussian_error
    assert run_small(plan, tmp_path) == [first, second]


def test_a_method_of_ones_own_gives_a_row(tmp_path):
    class Mine(WeightedMSE):
        pass

    methods = {**METHODS, "Rank 2": Learned(Quadratic(rank=2)), "Mine": Learned(Mine())}
    plan = [experiment(name) for name in ("Rank 2", "Mine", "WeightedMSE")]
    rank_2, mine, same = run_small(plan, tmp_path, methods=methods)
    assert "Quadratic(rank=2" in rank_2.setting("settings")
    assert mine.test == same.test


def test_a_surrogate_that_prints_no_settings_is_known_by_them_all_the_same(tmp_path):
    class Silent(SoftTopK):
        __repr__ = object.__repr__

    plan = [replace(experiment("DFL"), surrogate=Silent(k=1)) for _ in range(2)]
    assert run_small(plan[:1], tmp_path) == run_small(plan[1:], tmp_path)


def test_a_surrogate_of_the_other_sense_is_refused(tmp_path):
    class Wrong(SoftTopK):
        sense = "min"  # type: ignore[assignment]

    with pytest.raises(InvalidInputError, match=r'surrogate has sense "min", the problem "max"'):
        run_small([replace(experiment("DFL"), surrogate=Wrong(k=1))], tmp_path)


def test_committed_rows_of_every_learned_loss_are_found_again():
    lines = (ROOT / "results" / "paper" / "rows.jsonl").read_text().splitlines()
    recorded = {(row["method"], row["settings"]) for row in map(json.loads, lines)}
    learned = {name: one for name, one in METHODS.items() if isinstance(one, Learned)}
    assert {(name, recorded_settings(method)) for name, method in learned.items()} <= recorded
