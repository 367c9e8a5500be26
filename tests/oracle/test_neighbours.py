import numpy as np
import pytest

import lodl
from lodl.errors import OracleError
from lodl.problems.highs import LinearProgram

RNG = np.random.default_rng(0)
Y = RNG.uniform(1, 3, (6, 8))
CAPACITIES = [{"row_upper": c} for c in RNG.uniform(6, 9, (6, 3))]
PROGRAM = LinearProgram(RNG.uniform(0.5, 3, (3, 8)), "max", row_upper=8, upper=2)


class Broken(LinearProgram):
    def neighbours(self, y_hat, context=None):
        raise ValueError("no basis")


def sample(oracle, sampler, n=12, context=CAPACITIES, **options):
    return oracle.sample(Y, sampler, n, context=context, slopes=True, **options)


def test_one_call_an_instance_brings_the_decisions_next_to_the_label():
    oracle = lodl.Oracle(PROGRAM)
    samples = sample(oracle, lodl.AdjacentVertices())
    assert oracle.n_calls == samples.n_calls == len(Y)
    for answers, y, context in zip(samples, Y, CAPACITIES, strict=True):
        zs = PROGRAM.neighbours(y, context)
        np.testing.assert_allclose(np.sort(answers.regret)[-len(zs) + 1 :], (zs[0] - zs[1:]) @ y)
        np.testing.assert_array_equal(answers.y_hat, np.broadcast_to(y, (12, 8)))


def test_a_prediction_brings_its_own_decision_first():
    oracle, y_hat = lodl.Oracle(PROGRAM), Y[::-1]
    samples = sample(oracle, lodl.AdjacentVertices(y_hat))
    assert oracle.n_calls == samples.n_calls == 2 * len(Y)
    regret = lodl.evaluation.regret(PROGRAM, y_hat, Y, context=CAPACITIES)
    np.testing.assert_allclose(samples.first_regrets(), regret, atol=1e-9)


def test_labels_and_predictions_are_joined_and_known_answers_are_not_called_again(tmp_path):
    with lodl.Oracle(PROGRAM, store=tmp_path / "answers.db") as oracle:
        first = sample(oracle, lodl.AdjacentVertices())
        both = first.union(sample(oracle, lodl.AdjacentVertices(Y[::-1])))
        assert both.n_calls == oracle.n_calls == 2 * len(Y)
    with lodl.Oracle(PROGRAM, store=tmp_path / "answers.db") as again:
        stored = sample(again, lodl.AdjacentVertices())
        assert again.n_calls <= 2 * len(Y)  # only to check that the store is this problem's
        for one, other in zip(first, stored, strict=True):
            np.testing.assert_array_equal(one.regret, other.regret)
    assert len(both[0].slope) > len(first[0].slope)


def test_workers_give_the_same_neighbours():
    alone, two = (lodl.Oracle(PROGRAM, n_jobs=n) for n in (None, 2))
    with two:
        both = (sample(oracle, lodl.AdjacentVertices()) for oracle in (alone, two))
        for one, other in zip(*both, strict=True):
            np.testing.assert_array_equal(one.regret, other.regret)


def test_if_there_are_no_neighbours_the_solver_is_called_instead():
    broken = Broken(PROGRAM._arrays.of(None)["A"], "max", row_upper=8, upper=2)
    samples = sample(lodl.Oracle(broken), lodl.AdjacentVertices(Y[::-1]), context=None)
    plain = lodl.Oracle(broken).sample(Y, lodl.AtPredictions(Y[::-1], n_exact=1), 1)
    np.testing.assert_allclose(samples.first_regrets(), plain.first_regrets())


def test_a_failed_call_fails_for_all_its_points():
    impossible = [{"row_lower": 9.0, "row_upper": 8.0}, *CAPACITIES[1:]]
    with pytest.raises(OracleError, match="instance 0"):
        sample(lodl.Oracle(PROGRAM), lodl.AdjacentVertices(), context=impossible)
    oracle = lodl.Oracle(PROGRAM, on_failure="skip", max_failure_rate=0.5)
    samples = sample(oracle, lodl.AdjacentVertices(), context=impossible)
    assert len(samples[0].regret) == 0
    assert len(samples[1].regret) == 12


def test_decisions_next_to_one_are_shared_without_a_context():
    samples = sample(lodl.Oracle(PROGRAM), lodl.AdjacentVertices(), context=None)
    alone = lodl.Oracle(PROGRAM).sample(Y, n_samples=0, slopes=True)
    assert len(samples.pool()) > len(alone.pool())
    assert (samples.pool().regrets(None) > -1e-9).all()
