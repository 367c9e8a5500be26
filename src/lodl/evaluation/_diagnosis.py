"""How faithful a learned loss is where a model predicts, and what would help."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count, check_predictions
from lodl._typing import Context
from lodl.errors import InvalidInputError
from lodl.evaluation._fidelity import CALLS_PER_INSTANCE, Fidelity, measure_fidelity
from lodl.evaluation._judge import judge, number_text
from lodl.evaluation._probe import Probe
from lodl.evaluation._region import Region, is_one_sided, locate_predictions, sampler_of
from lodl.losses import FitSummary, LearnedLoss
from lodl.losses._verdicts import ANOTHER_PROBLEM, Finding, finding_text
from lodl.oracle import Oracle
from lodl.problems import Problem
from lodl.problems._problem import check_predicted, describe
from lodl.samplers import Sampler
from lodl.samplers._sampler import check_sampler


@dataclass(frozen=True)
class Diagnosis:
    """How faithful a learned loss is where a model predicts. `str(diagnosis)` is the text.

    Attributes:
        n_instances: Number of instances of the loss.
        n_examined: Number of instances at which the oracle was asked.
        oracle_calls: Number of solver calls.
        fidelity: Learned loss compared with true regret at the predictions.
        region: The predictions compared with the samples; None if the sampler is not known.
        fit: How well the loss repeats the samples it was learned from.
        findings: What to do, the most important first.
    """

    n_instances: int
    n_examined: int
    oracle_calls: int
    fidelity: Fidelity
    region: Region | None
    fit: FitSummary
    findings: tuple[Finding, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as JSON values; None stands for a number that is not defined."""
        fidelity = asdict(self.fidelity)
        fidelity |= {"error_share": self.fidelity.error_share, "quality": self.fidelity.quality}
        values = {
            "family": str(self.fit.family),
            "n_instances": self.n_instances,
            "n_examined": self.n_examined,
            "oracle_calls": self.oracle_calls,
            "fidelity": fidelity,
            "region": None if self.region is None else asdict(self.region),
            "fit": {
                "n_samples": self.fit.n_samples,
                "error_fitted": self.fit.error_fitted.median,
                "error_held_out": self.fit.error_held_out.median,
            },
            "findings": [
                {**asdict(finding.verdict), "evidence": finding.evidence}
                for finding in self.findings
            ],
        }
        jsonable: dict[str, Any] = _json(values)
        return jsonable

    def __str__(self) -> str:
        found = self.fidelity
        worst = [
            f"{one.instance} (loss {one.loss:.3g}, regret {one.regret:.3g})" for one in found.worst
        ]
        share = f", {found.error_share:.2f} of the mean regret" if found.regret > 0 else ""
        error = {"absolute error": f"{found.error:.3g}{share}"}
        if self.fit.family.uses_slopes:  # it bounds or ranks regrets, and does not repeat them
            error = {"bound": f"{found.share_bounded:.0%} of regrets are at most the loss"}
        return finding_text(
            f"{self.fit.family} at the predictions for {self.n_examined} of {self.n_instances} "
            "instances",
            self.findings,
            {
                "mean regret": f"{found.regret:.3g}; with predictions of other instances "
                f"{number_text(found.foreign_regret)}, with reversed errors "
                f"{found.reversed_regret:.3g}",
                "rank correlation": f"{number_text(found.rank_correlation, '.2f')} across "
                f"instances, {number_text(found.rank_correlation_within, '.2f')} within",
                "learned loss": f"{found.loss:.3g} on average",
                **error,
                "size of errors": self._region_text(),
                "worst instances": ", ".join(worst),
                "solver calls": f"{self.oracle_calls}",
            },
        )

    def _region_text(self) -> str:
        if self.region is None:
            return "not compared with the samples: give `sampler`"
        found = self.region
        text = (
            f"{found.size_ratio:.2g} times those sampled; outside the samples "
            f"{found.share_outside:.0%}, far inside {found.share_inside:.0%}"
        )
        if found.share_wider > 0:
            text += f", wrong in more coordinates at once {found.share_wider:.0%}"
        return text


def diagnose(
    loss: LearnedLoss,
    problem: Problem | Oracle,
    y: npt.ArrayLike,
    y_hat: npt.ArrayLike,
    *,
    context: Context = None,
    sampler: Sampler | None = None,
    n_calls: int = 900,
    seed: int = 0,
) -> Diagnosis:
    """Return how well a learned loss agrees with the regret where a model predicts.

    A loss is learned around the labels but used where the model errs. Nine solver calls per
    instance compare it with the true regret there. The findings say whether more samples, another
    scale or another family would help.

    If you can, pass the predictions of a model trained on the loss. With those of another model you
    also learn how good the loss is around them, but the model itself may then be the cause of poor
    decisions. For some of the instances, use `loss.subset(index)`; for parallel calls,
    `with joblib.parallel_config(n_jobs=2)`.

    Args:
        loss: The learned loss.
        problem: The problem it was learned from.
        y: The labels it was learned for, shape (n, *label_shape).
        y_hat: The model's predictions for the same instances.
        context: One entry per instance, or None.
        sampler: The sampler the loss was learned with. Needed only if the loss does not record it:
            a scale that is an array, `AtPredictions`, or a sampler of your own.
        n_calls: Maximum number of solver calls. If they are too few for all instances, a random
            part of the instances is examined.
        seed: Random seed for the choice of instances and points.

    Raises:
        InvalidInputError: An argument is not what was expected.
        OracleError: A solver call failed.

    Example:
        >>> domain = lodl.domains.knapsack(sizes=(20, 1, 1))
        >>> y = domain.splits.train.y
        >>> loss = lodl.learn_loss(domain.problem, y)
        >>> found = lodl.evaluation.diagnose(loss, domain.problem, y, y.mean(axis=0) + 0 * y)
        >>> found.oracle_calls
        180
    """
    if not isinstance(loss, LearnedLoss):
        raise InvalidInputError(f"`loss` must be a learned loss, got {type(loss).__name__}.")
    if sampler is not None:
        check_sampler(sampler)
    seed = check_count("seed", seed, minimum=0)
    predictions, labels, context = check_predicted(Oracle.of(problem).problem, y_hat, y, context)
    loss.check_labels(labels)
    check_predictions(predictions, labels)
    n_calls = check_count("n_calls", n_calls, minimum=CALLS_PER_INSTANCE)
    n_examined = min(len(labels), n_calls // CALLS_PER_INSTANCE)
    index = np.random.default_rng(seed).permutation(len(labels))[:n_examined]
    probe = Probe.at(np.sort(index), problem, labels, context)
    fidelity = measure_fidelity(loss, predictions, probe=probe, seed=seed)
    sampler = sampler or sampler_of(loss)
    region = None
    if sampler is not None:
        region = locate_predictions(predictions, labels, probe=probe, sampler=sampler, seed=seed)
    fit = loss.summary()
    return Diagnosis(
        n_instances=len(labels),
        n_examined=n_examined,
        oracle_calls=n_examined * CALLS_PER_INSTANCE,
        fidelity=fidelity,
        region=region,
        fit=fit,
        findings=(
            *_judge_problem(Oracle.of(problem).problem, loss),
            *judge(fidelity, region, fit, is_one_sided=is_one_sided(loss)),
        ),
    )


def _judge_problem(problem: Problem, loss: LearnedLoss) -> Iterator[Finding]:
    """Yield a finding if the loss records its problem, and it is another one."""
    learned_from, name = loss.provenance.get("problem"), describe(problem)
    if learned_from not in (None, name):
        yield Finding(ANOTHER_PROBLEM, f"The loss was learned from {learned_from}, this is {name}.")


def _json(value: Any) -> Any:
    """Return a value with lists for tuples, and None for numbers that are not finite."""
    if isinstance(value, dict):
        return {key: _json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_json(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
