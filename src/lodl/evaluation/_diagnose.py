"""Asks the oracle where a model predicts, and says what was learned."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lodl._typing import Context
from lodl._validation import check_count, check_labels, check_predictions
from lodl.errors import InvalidInputError
from lodl.evaluation._answers import Oracle
from lodl.evaluation._diagnosis import Diagnosis
from lodl.evaluation._fidelity import CALLS_PER_INSTANCE, measure
from lodl.evaluation._region import locate, sampler_of
from lodl.evaluation._verdicts import Verdict, another_problem, judge
from lodl.losses import LearnedLoss, summarise
from lodl.oracle import fingerprint
from lodl.problems import Problem
from lodl.samplers import Sampler
from lodl.samplers._sampler import check_sampler


def diagnose(
    loss: LearnedLoss,
    problem: Problem,
    y: npt.ArrayLike,
    y_hat: npt.ArrayLike,
    *,
    context: Context = None,
    sampler: Sampler | None = None,
    n_calls: int = 900,
    seed: int = 0,
) -> Diagnosis:
    """Tells how faithful a learned loss is where a model predicts, and what would help.

    A loss is learned around labels, but used where the model errs. Nine oracle calls an instance
    compare it with the true regret there. The verdicts say whether more samples, another scale or
    another family would help, or that nothing needs to.

    The predictions are best those of a model that was trained on the loss. With those of another
    model, the figures tell how faithful the loss is around them, but poor decisions may be the
    model's own fault. For some of the instances, use `loss.subset(index)`; for parallel calls,
    `with joblib.parallel_config(n_jobs=2)`.

    Args:
        loss: The learned loss.
        problem: The problem it was learned from.
        y: The labels it was learned for, shape (n, *label_shape).
        y_hat: The model's predictions for the same instances.
        context: One entry per instance, or None.
        sampler: The sampler the loss was learned with. Only needed where the loss does not tell: a
            scale that is an array, `AroundPredictions`, a sampler of your own.
        n_calls: The most oracle calls to make. With too few for all instances, some are drawn.
        seed: Of the choice of instances, and of the points tried.

    Raises:
        InvalidInputError: An argument is not what was expected.
        OracleError: A call failed.
    """
    if not isinstance(loss, LearnedLoss):
        raise InvalidInputError(f"`loss` must be a learned loss, got {type(loss).__name__}.")
    if sampler is not None:
        check_sampler(sampler)
    seed = check_count("seed", seed, minimum=0)
    loss.check_labels(y)
    labels = check_labels(y)
    predictions = check_predictions(y_hat, labels)
    n_calls = check_count("n_calls", n_calls, minimum=CALLS_PER_INSTANCE)
    n_examined = min(len(labels), n_calls // CALLS_PER_INSTANCE)
    index = np.random.default_rng(seed).permutation(len(labels))[:n_examined]
    oracle = Oracle.of(problem, labels, context, np.sort(index))
    fidelity = measure(loss, predictions, oracle=oracle, seed=seed)
    sampler = sampler or sampler_of(loss)
    region = None
    if sampler is not None:
        region = locate(predictions, labels, oracle=oracle, sampler=sampler, seed=seed)
    fit = summarise(loss)
    return Diagnosis(
        n_instances=len(labels),
        n_examined=n_examined,
        oracle_calls=n_examined * CALLS_PER_INSTANCE,
        fidelity=fidelity,
        region=region,
        fit=fit,
        verdicts=(*_identify(problem, loss), *judge(fidelity, region, fit)),
    )


def _identify(problem: Problem, loss: LearnedLoss) -> Iterator[Verdict]:
    """Yields a verdict where the loss tells of its problem, and tells of another."""
    learned_from = loss.provenance.get("fingerprints", {}).get("problem", "unknown")
    try:
        is_another = learned_from not in ("unknown", fingerprint(problem))
    except InvalidInputError:  # it has no fingerprint
        return
    if is_another:
        yield another_problem()
