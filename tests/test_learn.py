import numpy as np
import pytest

import lodl
from lodl.errors import InvalidInputError
from lodl.fitting import fit
from lodl.oracle import evaluate

Y = np.random.default_rng(0).random((5, 4))


class CountingPick(lodl.Problem):
    sense = "max"

    def __init__(self):
        self.calls = []

    def __getstate__(self):
        return {}

    def solve(self, y_hat, context):
        self.calls.append(1)
        return int(np.argmax(y_hat))

    def objective(self, z, y, context):
        return y[z]


def test_it_is_sampling_followed_by_fitting():
    problem = CountingPick()
    arguments = {"sampler": lodl.TwoPerturbed(0.5), "n_samples": 120, "seed": 4}
    loss = lodl.learn_loss(problem, Y, family=lodl.WeightedMSE(), **arguments)
    by_steps = fit(evaluate(problem, Y, **arguments), lodl.WeightedMSE())
    assert np.array_equal(loss.phi["w"], by_steps.phi["w"])
    assert loss.provenance["seed"] == 4
    assert loss.provenance["n_samples"] == 120


def test_several_families_share_one_set_of_samples():
    families = [lodl.WeightedMSE(), lodl.DirectedWeightedMSE(), lodl.Quadratic(rank=2)]
    alone, together = CountingPick(), CountingPick()
    lodl.learn_loss(alone, Y, family=families[0], n_samples=100)
    losses = lodl.learn_loss(together, Y, family=families, n_samples=100)
    assert [loss.family for loss in losses] == families
    assert len(together.calls) == len(alone.calls)


def test_the_loss_is_zero_at_the_labels_and_tells_bad_predictions_from_good_ones():
    loss = lodl.learn_loss(CountingPick(), Y, n_samples=300)
    assert (loss.value(Y) == 0).all()
    best, worst = Y.argmax(axis=1), Y.argmin(axis=1)
    swapped = Y.copy()  # the worst item looks best
    swapped[np.arange(5), best], swapped[np.arange(5), worst] = Y.min(axis=1), Y.max(axis=1)
    stretched = Y.copy()  # the best item looks better still: the decision stays
    stretched[np.arange(5), best] += Y.max(axis=1) - Y.min(axis=1)
    assert (loss.value(stretched) < 0.5 * loss.value(swapped)).all()


@pytest.mark.parametrize("family", ["WeightedMSE", [lodl.WeightedMSE(), lodl.Quadratic]])
def test_a_family_that_is_none_is_an_error_before_any_oracle_call(family):
    problem = CountingPick()
    with pytest.raises(InvalidInputError, match="`family` must be a loss family such as"):
        lodl.learn_loss(problem, Y, family=family)
    assert not problem.calls
