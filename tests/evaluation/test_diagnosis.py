import numpy as np
import pytest
from scipy.stats import spearmanr

import lodl
from lodl.domains import TopK
from lodl.errors import InvalidInputError
from lodl.evaluation import diagnose

N, DIM = 12, 4


@pytest.fixture(scope="module")
def y():
    return np.random.default_rng(0).random((N, DIM))


@pytest.fixture(scope="module")
def y_hat(y):
    return y + np.random.default_rng(1).normal(scale=0.4, size=y.shape)


@pytest.fixture(scope="module")
def loss(y):
    return lodl.learn_loss(
        TopK(1), y, family=lodl.DirectedWeightedMSE(), sampler=lodl.AllPerturbed(0.4), n_samples=200
    )


def regret_of_the_best(y_hat, y):
    return y.max(axis=1) - y[np.arange(len(y)), y_hat.argmax(axis=1)]


def names(diagnosis):
    return [finding.name for finding in diagnosis.findings]


def test_numbers_are_those_of_the_true_regret(loss, y, y_hat):
    diagnosis = diagnose(loss, TopK(1), y, y_hat)
    regret, value = regret_of_the_best(y_hat, y), loss.value(y_hat)
    assert diagnosis.regret == pytest.approx(regret.mean())
    assert diagnosis.loss == pytest.approx(value.mean())
    assert diagnosis.rank_correlation == pytest.approx(spearmanr(value, regret).statistic)


def test_foreign_predictions_are_those_of_other_instances():
    best_items = np.eye(N)  # each instance has one of its own, so any other's prediction costs 1
    loss = lodl.learn_loss(TopK(1), best_items, family=lodl.WeightedMSE(), n_samples=10)
    for seed in range(5):
        diagnosis = diagnose(loss, TopK(1), best_items, best_items, random_state=seed)
        assert diagnosis.foreign_regret == diagnosis.quality == 1


def test_foreign_predictions_are_not_those_of_neighbours():
    """Instances in order of time: the next one's prediction would cost nearly nothing."""
    angle = np.linspace(0, np.pi, 90)
    y = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    loss = lodl.learn_loss(TopK(1), y, family=lodl.WeightedMSE(), n_samples=10)
    of_pairs = [regret_of_the_best(np.roll(y, i, axis=0), y).mean() for i in range(1, len(y))]
    assert of_pairs[0] < 0.05 * np.mean(of_pairs)
    diagnosis = diagnose(loss, TopK(1), y, y)
    assert diagnosis.foreign_regret == pytest.approx(np.mean(of_pairs), rel=0.3)


def test_a_loss_that_is_the_regret_is_faithful_within_instances():
    """A decision by nearest number: its regret is the squared error, as the loss should be."""
    follow = lodl.problem(lambda y_hat: y_hat, lambda z, y: np.square(z - y).sum(), sense="min")
    y = np.random.default_rng(0).normal(size=(20, 3))
    y_hat = y + np.random.default_rng(1).normal(size=y.shape)
    learned = lodl.learn_loss(follow, y, family=lodl.WeightedMSE(ridge=0), n_samples=50)
    diagnosis = diagnose(learned, follow, y, y_hat)
    assert np.abs(diagnosis.losses - diagnosis.regrets).mean() < 1e-6 * diagnosis.regret
    assert diagnosis.rank_correlation == diagnosis.rank_correlation_within == pytest.approx(1)


def test_calls_are_counted_and_stay_within_the_budget(loss, y, y_hat):
    calls = []

    class Counted(TopK):
        def solve_many(self, y_hats, context=None):
            calls.append(len(y_hats))
            return super().solve_many(y_hats, context)

    diagnosis = diagnose(loss, Counted(1), y, y_hat, n_calls=50)
    assert diagnosis.n_calls == sum(calls) == 48
    assert len(diagnosis.instances) == 6
    assert "6 of 12 instances\n" in str(diagnosis)
    assert "solver calls      48" in str(diagnosis)


def test_a_seed_chooses_the_instances_and_repeats(loss, y, y_hat):
    diagnosis = [
        diagnose(loss, TopK(1), y, y_hat, n_calls=27, random_state=seed) for seed in (0, 0, 1)
    ]
    assert str(diagnosis[0]) == str(diagnosis[1])
    assert diagnosis[0].instances.tolist() != diagnosis[2].instances.tolist()


def test_some_instances_are_diagnosed_by_a_subset_of_the_loss(loss, y, y_hat):
    index = np.array([7, 2, 5])
    diagnosis = diagnose(loss.subset(index), TopK(1), y[index], y_hat[index])
    assert diagnosis.instances.tolist() == [0, 1, 2]
    assert diagnosis.regret == pytest.approx(regret_of_the_best(y_hat, y)[index].mean())


def test_each_instance_is_asked_in_its_own_context(y, y_hat):
    pick = lodl.problem(
        lambda y_hat, price: int(np.argmax(y_hat - price)),
        lambda z, y, price: (y - price)[z],
        sense="max",
    )
    price = np.random.default_rng(2).random(y.shape)
    learned = lodl.learn_loss(pick, y, context=price, family=lodl.WeightedMSE(), n_samples=50)
    diagnosis = diagnose(learned, pick, y, y_hat, context=price, n_calls=40, random_state=3)
    chosen = np.sort(np.random.default_rng(3).permutation(N)[:5])
    expected = regret_of_the_best(y_hat - price, y - price)[chosen].mean()
    assert diagnosis.regret == pytest.approx(expected)


def test_the_solver_is_asked_in_the_valid_range_only(y, y_hat):
    seen = []

    def solve(y_hat):
        seen.append(y_hat)
        return int(np.argmax(y_hat))

    pick = lodl.problem(
        solve, lambda z, y: y[z], sense="max", project=lambda y_hats: y_hats.clip(0, 1)
    )
    learned = lodl.learn_loss(pick, y, family=lodl.WeightedMSE(), n_samples=50)
    seen.clear()
    diagnose(learned, pick, y, y_hat)
    assert y_hat.max() > 1
    assert np.min(seen) >= 0
    assert np.max(seen) <= 1


def test_perfect_predictions_need_nothing_and_have_no_share(loss, y):
    diagnosis = diagnose(loss, TopK(1), y, y)
    assert names(diagnosis) == []
    assert "nan of the mean regret" not in str(diagnosis)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": np.ones((N, DIM))}, "`y` must be the labels the loss was learned for"),
        ({"y_hat": np.ones((N - 1, DIM))}, "`y_hat` must have the labels' shape"),
        ({"y_hat": np.full((N, DIM), np.nan)}, "`y_hat` must be finite"),
        ({"context": [0]}, "`context` must have one entry per instance"),
        ({"n_calls": 7}, "`n_calls` must be a whole number of at least 8"),
        ({"oracle": TopK}, "`problem` must be an instance"),
    ],
)
def test_what_does_not_fit_is_refused(loss, y, y_hat, changes, message):
    given = {"oracle": TopK(1), "y": y, "y_hat": y_hat, **changes}
    with pytest.raises(InvalidInputError, match=message):
        diagnose(loss, **given)


def test_rounding_errors_are_no_sign_of_a_wrong_sense():
    y = np.tile([0.1, 0.2, 0.3, 0.0, 0.05, 0.07], (4, 1))
    loss = lodl.learn_loss(TopK(3), y, family=lodl.WeightedMSE(), n_samples=50)
    same_items = y[:, [2, 0, 1, 3, 4, 5]]
    diagnosis = diagnose(loss, TopK(3), y, same_items)
    assert diagnosis.regret == 0
    assert names(diagnosis) == []


def test_a_single_instance_has_no_predictions_of_others(y, y_hat):
    loss = lodl.learn_loss(TopK(1), y[:1], family=lodl.WeightedMSE(), n_samples=50)
    diagnosis = diagnose(loss, TopK(1), y[:1], y_hat[:1])
    assert np.isnan(diagnosis.foreign_regret)
    assert "not defined" in str(diagnosis)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"random_state": -1}, "`random_state` must be a whole number of at least 0"),
        ({"loss": lodl.WeightedMSE()}, "`loss` must be a learned loss, got WeightedMSE"),
    ],
)
def test_an_argument_of_another_kind_is_refused(loss, y, y_hat, arguments, message):
    given = {"loss": loss, "oracle": TopK(1), "y": y, "y_hat": y_hat} | arguments
    with pytest.raises(InvalidInputError, match=message):
        diagnose(**given)


def test_the_text_is_for_a_terminal_and_leads_with_findings(loss, y, y_hat):
    diagnosis = diagnose(loss, TopK(1), y, y + 10 * (y_hat - y))
    assert names(diagnosis)[0] == "scale"
    assert max(map(len, str(diagnosis).splitlines())) <= 88
    assert str(diagnosis).splitlines()[1].startswith("- scale: ")


@pytest.mark.parametrize("factor", [0.1, 5.0])
@pytest.mark.parametrize("scale", [0.3, "auto"])
def test_the_size_of_errors_is_in_units_of_the_samplers_scale(factor, scale):
    y = np.random.default_rng(0).random((30, 20)) * np.arange(1, 21)
    loss = lodl.learn_loss(
        TopK(1), y, family=lodl.WeightedMSE(), sampler=lodl.OnePerturbed(scale), n_samples=2
    )
    unit = y.std(axis=0) if scale == "auto" else scale
    y_hat = y + factor * unit * np.random.default_rng(1).standard_normal(y.shape)
    diagnosis = diagnose(loss, TopK(1), y, y_hat)
    assert diagnosis.size_ratio == pytest.approx(factor, rel=0.15)
    assert diagnosis.scale == pytest.approx(np.max(unit))


@pytest.mark.parametrize(
    "sampler", [lodl.AllPerturbed(np.full(DIM, 0.4)), lodl.AtPredictions(np.zeros((N, DIM)))]
)
def test_sizes_are_compared_only_with_a_recorded_scale_around_labels(y, y_hat, sampler):
    loss = lodl.learn_loss(TopK(1), y, family=lodl.WeightedMSE(), sampler=sampler, n_samples=9)
    diagnosis = diagnose(loss, TopK(1), y, y_hat)
    assert np.isnan(diagnosis.size_ratio)
    assert "size of errors    not defined" in str(diagnosis)


def test_instances_with_failed_calls_are_left_out(loss, y, y_hat):
    def solve(y_hat):
        if (y_hat == y[0]).all():
            raise RuntimeError("no decision")
        return int(np.argmax(y_hat))

    flaky = lodl.problem(solve, lambda z, y: y[z], sense="max")
    oracle = lodl.Oracle(flaky, on_failure="skip", max_failure_rate=1.0, progress=False)
    diagnosis = diagnose(loss, oracle, y, y_hat)
    assert 0 not in diagnosis.instances
    assert np.isfinite(diagnosis.regret)
