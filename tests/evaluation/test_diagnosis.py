import dataclasses
import json

import numpy as np
import pytest
from scipy.stats import spearmanr

import lodl
from lodl.domains import TopK
from lodl.errors import InvalidInputError
from lodl.evaluation import diagnose
from lodl.losses import fit
from lodl.oracle import Oracle

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
    return [finding.verdict.name for finding in diagnosis.findings]


def test_numbers_are_those_of_the_true_regret(loss, y, y_hat):
    found = diagnose(loss, TopK(1), y, y_hat).fidelity
    regret, value = regret_of_the_best(y_hat, y), loss.value(y_hat)
    assert found.regret == pytest.approx(regret.mean())
    assert found.loss == pytest.approx(value.mean())
    assert found.error == pytest.approx(np.abs(value - regret).mean())
    assert found.share_bounded == (value >= regret).mean()
    assert found.error_share == pytest.approx(np.abs(value - regret).mean() / regret.mean())
    assert found.rank_correlation == pytest.approx(spearmanr(value, regret).statistic)
    assert found.reversed_regret == pytest.approx(regret_of_the_best(2 * y - y_hat, y).mean())


def test_foreign_predictions_are_those_of_other_instances():
    best_items = np.eye(N)  # each instance has one of its own, so any other's prediction costs 1
    loss = lodl.learn_loss(TopK(1), best_items, family=lodl.WeightedMSE(), n_samples=10)
    for seed in range(5):
        found = diagnose(loss, TopK(1), best_items, best_items, seed=seed).fidelity
        assert found.foreign_regret == found.quality == 1


def test_foreign_predictions_are_not_those_of_neighbours():
    """Instances in order of time: the next one's prediction would cost nearly nothing."""
    angle = np.linspace(0, np.pi, 90)
    y = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    loss = lodl.learn_loss(TopK(1), y, family=lodl.WeightedMSE(), n_samples=10)
    of_pairs = [regret_of_the_best(np.roll(y, i, axis=0), y).mean() for i in range(1, len(y))]
    assert of_pairs[0] < 0.05 * np.mean(of_pairs)
    found = diagnose(loss, TopK(1), y, y).fidelity
    assert found.foreign_regret == pytest.approx(np.mean(of_pairs), rel=0.3)


def test_the_worst_instances_come_worst_first(loss, y, y_hat):
    worst = diagnose(loss, TopK(1), y, y_hat).fidelity.worst
    error = np.abs(loss.value(y_hat) - regret_of_the_best(y_hat, y))
    assert [one.instance for one in worst] == np.argsort(-error)[:5].tolist()
    assert [abs(one.loss - one.regret) for one in worst] == pytest.approx(sorted(error)[:-6:-1])


@pytest.mark.parametrize(
    ("family", "sees"),
    [
        (lodl.WeightedMSE(), False),
        (lodl.Quadratic(), False),
        (lodl.DirectedWeightedMSE(), True),
        (lodl.ConvexDirectedQuadratic(), True),
    ],
)
def test_a_family_sees_direction_or_does_not(y, y_hat, family, sees):
    learned = lodl.learn_loss(TopK(1), y, family=family, n_samples=50)
    assert diagnose(learned, TopK(1), y, y_hat).fidelity.sees_direction == sees


def test_a_loss_that_is_the_regret_is_faithful_within_instances():
    """A decision by nearest number: its regret is the squared error, as the loss should be."""
    follow = lodl.problem(lambda y_hat: y_hat, lambda z, y: np.square(z - y).sum(), sense="min")
    y = np.random.default_rng(0).normal(size=(20, 3))
    y_hat = y + np.random.default_rng(1).normal(size=y.shape)
    learned = lodl.learn_loss(follow, y, family=lodl.WeightedMSE(ridge=0), n_samples=50)
    found = diagnose(learned, follow, y, y_hat).fidelity
    assert found.error < 1e-6 * found.regret
    assert found.rank_correlation == found.rank_correlation_within == pytest.approx(1)


def test_calls_are_counted_and_stay_within_the_budget(loss, y, y_hat):
    calls = []

    class Counted(TopK):
        def solve_many(self, y_hats, context=None):
            calls.append(len(y_hats))
            return super().solve_many(y_hats, context)

    found = diagnose(loss, Counted(1), y, y_hat, n_calls=50)
    assert found.oracle_calls == sum(calls) == 45
    assert (found.n_examined, found.n_instances) == (5, N)
    assert "5 of 12 instances\n" in str(found)
    assert "solver calls      45" in str(found)


def test_a_seed_chooses_the_instances_and_repeats(loss, y, y_hat):
    found = [diagnose(loss, TopK(1), y, y_hat, n_calls=27, seed=seed) for seed in (0, 0, 1)]
    assert found[0] == found[1]
    assert found[0].fidelity.worst != found[2].fidelity.worst


def test_some_instances_are_diagnosed_by_a_subset_of_the_loss(loss, y, y_hat):
    index = np.array([7, 2, 5])
    found = diagnose(loss.subset(index), TopK(1), y[index], y_hat[index])
    assert found.n_examined == 3
    assert found.fidelity.regret == pytest.approx(regret_of_the_best(y_hat, y)[index].mean())
    assert found.region is not None


def test_each_instance_is_asked_in_its_own_context(y, y_hat):
    pick = lodl.problem(
        lambda y_hat, price: int(np.argmax(y_hat - price)),
        lambda z, y, price: (y - price)[z],
        sense="max",
    )
    price = np.random.default_rng(2).random(y.shape)
    learned = lodl.learn_loss(pick, y, context=price, family=lodl.WeightedMSE(), n_samples=50)
    found = diagnose(learned, pick, y, y_hat, context=price, n_calls=45, seed=3)
    chosen = np.sort(np.random.default_rng(3).permutation(N)[:5])
    expected = regret_of_the_best(y_hat - price, y - price)[chosen].mean()
    assert found.fidelity.regret == pytest.approx(expected)


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


def test_a_loss_made_of_decisions_shows_how_often_it_bounds_the_regret_instead_of_errors(
    loss, y, y_hat
):
    found = diagnose(loss, TopK(1), y, y_hat)
    assert "absolute error" in str(found)
    fit = dataclasses.replace(found.fit, family=lodl.DecisionHinges())
    shown = str(dataclasses.replace(found, fit=fit))
    assert f"{found.fidelity.share_bounded:.0%} of regrets are at most the loss" in shown
    assert "absolute error" not in shown


def test_the_record_is_json_and_the_text_is_for_a_terminal(loss, y, y_hat):
    found = diagnose(loss, TopK(1), y, y_hat)
    record = found.to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["fidelity"]["error_share"] == found.fidelity.error_share
    assert record["findings"][0]["name"] == found.findings[0].verdict.name
    text = str(found)
    assert max(map(len, text.splitlines())) <= 100
    assert text.splitlines()[1].startswith(f"- {found.findings[0].verdict.name}:")


def test_perfect_predictions_need_nothing_and_have_no_share(loss, y):
    found = diagnose(loss, TopK(1), y, y)
    assert names(found) == ["good decisions"]
    assert found.to_dict()["fidelity"]["error_share"] is None
    assert "nan of the mean regret" not in str(found)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": np.ones((N, DIM))}, "`y` must be the labels the loss was learned for"),
        ({"y_hat": np.ones((N - 1, DIM))}, "`y_hat` must have the labels' shape"),
        ({"y_hat": np.full((N, DIM), np.nan)}, "`y_hat` must be finite"),
        ({"context": [0]}, "`context` must have one entry per instance"),
        ({"n_calls": 8}, "`n_calls` must be a whole number of at least 9"),
        ({"problem": TopK}, "`problem` must be an instance"),
    ],
)
def test_what_does_not_fit_is_refused(loss, y, y_hat, changes, message):
    given = {"problem": TopK(1), "y": y, "y_hat": y_hat, **changes}
    with pytest.raises(InvalidInputError, match=message):
        diagnose(loss, **given)


def test_another_problem_than_the_loss_was_learned_from_is_the_first_finding(loss, y, y_hat):
    assert names(diagnose(loss, TopK(2), y, y_hat))[0] == "another problem"
    assert "another problem" not in names(diagnose(loss, TopK(1), y, y_hat))


def test_a_problem_without_a_fingerprint_is_taken_as_it_is(loss, y, y_hat):
    problem = TopK(1)
    object.__setattr__(problem, "handle", (number for number in range(3)))
    assert "another problem" not in names(diagnose(loss, problem, y, y_hat))


def test_rounding_errors_are_no_sign_of_a_wrong_sense():
    y = np.tile([0.1, 0.2, 0.3, 0.0, 0.05, 0.07], (4, 1))
    loss = lodl.learn_loss(TopK(3), y, family=lodl.WeightedMSE(), n_samples=50)
    same_items = y[:, [2, 0, 1, 3, 4, 5]]
    found = diagnose(loss, TopK(3), y, same_items)
    assert found.fidelity.regret == 0
    assert names(found) == ["good decisions"]


def test_a_single_instance_has_no_predictions_of_others(y, y_hat):
    loss = lodl.learn_loss(TopK(1), y[:1], family=lodl.WeightedMSE(), n_samples=50)
    found = diagnose(loss, TopK(1), y[:1], y_hat[:1])
    assert np.isnan(found.fidelity.foreign_regret)
    assert "not defined" in str(found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "`seed` must be a whole number of at least 0"),
        ({"sampler": lodl.AllPerturbed}, "`sampler` must be an instance, got the class"),
        ({"loss": lodl.WeightedMSE()}, "`loss` must be a learned loss, got WeightedMSE"),
    ],
)
def test_an_argument_of_another_kind_is_refused(loss, y, y_hat, arguments, message):
    given = {"loss": loss, "problem": TopK(1), "y": y, "y_hat": y_hat} | arguments
    with pytest.raises(InvalidInputError, match=message):
        diagnose(**given)


@pytest.mark.parametrize("family", [lodl.DirectedWeightedMSE(), lodl.DecisionHinges()], ids=repr)
def test_samples_around_predictions_alone_are_noticed_in_families_that_see_regrets_only(
    family, y, y_hat
):
    y_poor = y_hat[::-1]  # decisions that are not good already
    at_labels, at_predictions = (
        Oracle(TopK(1)).sample(y, sampler, 50, slopes=True)
        for sampler in (lodl.AllPerturbed(0.4), lodl.AtPredictions(y_poor, 0.1, n_exact=0))
    )
    both = at_labels.union(at_predictions), at_predictions.union(at_labels)
    alone, *joined = (
        names(diagnose(fit(samples, family), TopK(1), y, y_poor))
        for samples in (at_predictions, *both)
    )
    assert ("samples at labels" in alone) is not family.uses_slopes
    assert not any("samples at labels" in one for one in joined)
