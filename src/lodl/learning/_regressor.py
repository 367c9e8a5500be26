"""From data to a model that decides: the one class most users need."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from lodl._typing import Array, Context, Decision
from lodl._validation import check_context, check_count, check_labels, context_of
from lodl.errors import InvalidInputError
from lodl.evaluation import constant_predictions, regret
from lodl.learning._candidates import candidates, default_families, resolve_n_samples
from lodl.learning._folds import Folds
from lodl.learning._gain import Gain
from lodl.learning._oracle_budget import Plan
from lodl.learning._parameters import Parameters
from lodl.learning._search import HistoryRow, Search, Tried
from lodl.losses import Family, LearnedLoss
from lodl.oracle import OracleSamples, Store, sample
from lodl.oracle._sample import open_or_make
from lodl.problems import Problem
from lodl.problems._problem import check_problem_type, projected
from lodl.problems._regret import decide
from lodl.samplers import Sampler
from lodl.samplers._sampler import spread_of
from lodl.training import Learner, Predictor, learner_for

_logger = logging.getLogger(__name__)

Validation = int | float | tuple[Any, ...] | None


class DecisionFocusedRegressor(Parameters):
    """A regressor that is trained for the decisions made from its predictions.

    `fit` trains the model on squared error (2-stage) and on several losses learned from the
    solver's answers, and keeps what decides best on held-out instances: the average of the two best
    models, or 2-stage where nothing is better. Below 3000 instances they are chosen by
    cross-validation over five folds, which share all answers, and then trained on everything.

    Args:
        problem: The problem whose solver decides.
        estimator: A PyTorch module, a scikit-learn regressor or pipeline, a
            `lodl.training.Learner`, or None for a linear model (with PyTorch).
        families: Losses to try; None is a choice of decision families and, where the objective is
            not affine in the label, one that learns from regrets.
        n_samples: Candidates asked about around each label; None is 20, or 60 for an objective that
            is not affine in the label.
        n_rounds: Rounds that ask again around held-out predictions; the first is at those of
            2-stage.
        n_per_round: Candidates per instance and round.
        ensemble: Whether to average the two best models; False keeps one.
        shuffle: Whether held-out instances are drawn at random. For data in time order, False holds
            out the last ones.
        max_calls: The most oracle calls, or None. Rounds are left out first, then samples.
        max_seconds: Time after which no further model is tried, or None. What is kept then depends
            on the speed of the machine.
        n_jobs: Number of worker processes for oracle calls, as in joblib.
        store: Folder or URL that keeps the answers: a killed `fit` goes on where it was, and a
            second one with another estimator asks only where its own models predict.
        timeout: Seconds after which an oracle call is given up and counts as failed.
        on_failure: "raise" stops at the first oracle call that fails, "skip" leaves it out.
        random_state: Random seed of candidates, folds and training. The same seed gives the same
            model.
        verbose: Whether to show progress bars on a terminal.

    Attributes:
        chosen_: What was kept, in words.
        history_: A `HistoryRow` for every model that was tried.
        gain_: The held-out regret of the kept model beside that of 2-stage, with an interval.
        loss_: The learned loss of the kept model, of the better one if it averages two.
        n_oracle_calls_: Oracle calls made, without those the store could answer. Opening a store
            asks a few of its answers again; these are not counted.
        seconds_: Time that `fit` took.

    Example:
        >>> model = DecisionFocusedRegressor(problem).fit(X, Y)
        >>> print(model.summary())
        >>> decisions = model.decide(X_new)
    """

    def __init__(
        self,
        problem: Problem,
        estimator: Any = None,
        *,
        families: Sequence[Family] | None = None,
        n_samples: int | None = None,
        n_rounds: int = 3,
        n_per_round: int = 4,
        ensemble: bool = True,
        shuffle: bool = True,
        max_calls: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        store: str | PathLike[str] | Store | None = None,
        timeout: float | None = None,
        on_failure: Literal["raise", "skip"] = "raise",
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        self.problem = problem
        self.estimator = estimator
        self.families = families
        self.n_samples = n_samples
        self.n_rounds = n_rounds
        self.n_per_round = n_per_round
        self.ensemble = ensemble
        self.shuffle = shuffle
        self.max_calls = max_calls
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.store = store
        self.timeout = timeout
        self.on_failure = on_failure
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: npt.ArrayLike,  # noqa: N803 - as in scikit-learn
        Y: npt.ArrayLike,  # noqa: N803
        *,
        context: Context = None,
        validation: Validation = None,
    ) -> Self:
        """Train, ask, choose, and train what was chosen on all instances.

        Args:
            X: Features, shape (n, p), or (n, items, p) for one model that predicts each item's part
                of the label.
            Y: Labels, shape (n, *label_shape).
            context: One entry per instance, or None.
            validation: How to choose: a number of folds, a share of the instances to hold out, or
                instances of their own as a tuple `(X, Y)` or `(X, Y, context)`. None is five folds,
                or a fifth from 3000 instances on.
        """
        started = time.perf_counter()
        check_problem_type(self.problem)
        data, folds = self._data(X, Y, context, validation)
        learner = learner_for(self.estimator, seed=self.random_state)
        plan, tried = self._plan(data, learner)
        store = open_or_make(self.store, spread_of(data.y), self.problem)
        n_before = store.n_answers
        _logger.info(
            "Up to %d oracle calls: %d for each of %d instances; %d models of %d losses.",
            plan.calls_per_instance * len(data.y),
            plan.calls_per_instance,
            len(data.y),
            len(tried) * len(folds.held_out),
            len(tried),
        )
        search = Search(
            data.x,
            learner,
            folds,
            _Oracle(self, data, store),
            lambda: store.n_answers - n_before,
            started,
            started + (np.inf if self.max_seconds is None else self.max_seconds),
        )
        chosen, two_stage = search.run(tried, plan, ensemble=self.ensemble)
        final = np.arange(folds.n_final)
        self.predictors_: list[Predictor] = [
            learner.train(data.x[final], loss.subset(final), n_steps=n_steps)
            for loss, n_steps in chosen.parts
        ]
        self._keep(chosen, search.gain(chosen, two_stage), search.history, data.y[final])
        self.n_oracle_calls_ = search.n_calls()
        self.seconds_ = time.perf_counter() - started
        self.judged_by_ = str(folds)
        _logger.info("%s: %s", self.chosen_, self.gain_)
        return self

    def predict(self, X: npt.ArrayLike) -> Array:  # noqa: N803
        """Return predictions, shape (n, *label_shape)."""
        x = np.asarray(X, dtype=np.float64)
        self._check_fitted()
        y_hat = np.mean([model.predict(x) for model in self.predictors_], axis=0)
        return np.asarray(self.mean_ + self.kept_ * (y_hat - self.mean_))

    def decide(
        self,
        X: npt.ArrayLike,  # noqa: N803
        context: Context = None,
    ) -> list[Decision]:
        """Return the solver's decision for each instance, one oracle call each."""
        y_hat = projected(self.problem, self.predict(X))
        check_context(context, len(y_hat))
        return [decide(self.problem, one, context_of(context, i)) for i, one in enumerate(y_hat)]

    def regret(
        self,
        X: npt.ArrayLike,  # noqa: N803
        Y: npt.ArrayLike,  # noqa: N803
        context: Context = None,
    ) -> Array:
        """Return what each decision costs more than the best one, in the objective's unit."""
        return regret(self.problem, self.predict(X), Y, context=context, progress=self.verbose)

    def score(
        self,
        X: npt.ArrayLike,  # noqa: N803
        Y: npt.ArrayLike,  # noqa: N803
        context: Context = None,
    ) -> float:
        """Return the share of the constant prediction's regret that is avoided.

        1 is perfect, 0 is as good as always predicting the mean training label; worse is negative.
        """
        labels = check_labels(Y, "Y")
        constant = np.broadcast_to(self.mean_, labels.shape)
        y_hats = np.stack([self.predict(X), constant])
        ours, constants = regret(
            self.problem, y_hats, labels, context=context, progress=self.verbose
        ).mean(axis=1)
        if constants == 0:
            return 1.0 if ours == 0 else -np.inf
        return float(1 - ours / constants)

    def summary(self) -> str:
        """Return what was gained, whether it is worth it, what was tried, and what it cost."""
        self._check_fitted()
        width = max(len(row.name) for row in self.history_)
        lines = [
            f"Held-out decisions ({self.judged_by_}): {self.gain_}",
            f"Kept: {self.chosen_}.",
            f"{self.n_oracle_calls_:,} oracle calls, {self.seconds_:.3g} s.",
            "",
            f"{'model':{width}}  round    regret",
            *(f"{row.name:{width}}  {row.round:5d}  {row.regret:8.4g}" for row in self.history_),
        ]
        return "\n".join(lines)

    def _data(
        self, x: Any, y: Any, context: Context, validation: Validation
    ) -> tuple["_Data", Folds]:
        data = _Data.of(x, y, context)
        if isinstance(validation, tuple):
            if len(validation) not in (2, 3):
                raise InvalidInputError(
                    "`validation` must be `(X, Y)` or `(X, Y, context)`, got "
                    f"{len(validation)} entries."
                )
            more = _Data.of(*validation, *([None] if len(validation) == 2 else []))
            return data.joined(more), Folds.given(len(data.y), len(more.y))
        seed = check_count("random_state", self.random_state, minimum=0)
        return data, Folds.of(len(data.y), validation, shuffle=self.shuffle, seed=seed)

    def _plan(self, data: "_Data", learner: Learner) -> tuple[Plan, tuple[Any, ...]]:
        from lodl.testing import is_affine  # slow to import

        affine = is_affine(self.problem, data.y, context=data.context)
        n_samples, dim = resolve_n_samples(self.n_samples, is_affine=affine), data.y[0].size
        families = self.families
        if families is None:
            families = default_families(is_affine=affine, n_samples=n_samples, dim=dim)
        tried = candidates(families, dim)
        check_count("n_rounds", self.n_rounds, minimum=0)
        check_count("n_per_round", self.n_per_round)
        stops_early = getattr(learner, "stops_early", False)
        plan = Plan(n_samples, self.n_rounds, self.n_per_round, len(families), stops_early)
        return plan.within(self.max_calls, len(data.y)), tried

    def _keep(self, chosen: Tried, gain: Gain, history: list[HistoryRow], y: Array) -> None:
        self.chosen_, self.kept_ = chosen.name, chosen.kept
        self.loss_: LearnedLoss = chosen.parts[0][0]
        self.gain_, self.history_ = gain, history
        self.mean_ = constant_predictions(y, 1)[0]

    def _check_fitted(self) -> None:
        if not hasattr(self, "predictors_"):
            raise InvalidInputError(f"This {type(self).__name__} is not fitted yet: call `fit`.")


@dataclass(frozen=True, eq=False)
class _Data:
    """Features, labels and contexts of instances."""

    x: Array
    y: Array
    context: Context

    @classmethod
    def of(cls, x: Any, y: Any, context: Context) -> "_Data":
        labels = check_labels(y, "Y")
        features = np.asarray(x, dtype=np.float64)
        if features.ndim < 2 or len(features) != len(labels):
            raise InvalidInputError(
                f"`X` must have shape (n, p) or (n, items, p) with n = {len(labels)}, as `Y` has, "
                f"got {features.shape}."
            )
        check_context(context, len(labels))
        return cls(features, labels, context)

    def joined(self, other: "_Data") -> "_Data":
        if (self.context is None) != (other.context is None):
            raise InvalidInputError("`context` must be given for all instances, or for none.")
        context: Context = None
        if self.context is not None and other.context is not None:
            context = [*self.context, *other.context]
        return _Data(np.concatenate([self.x, other.x]), np.concatenate([self.y, other.y]), context)


@dataclass(frozen=True, eq=False)
class _Oracle:
    """The oracle, with all that stays the same from one question to the next."""

    model: DecisionFocusedRegressor
    data: _Data
    store: Store

    def __call__(self, sampler: Sampler, n_samples: int) -> OracleSamples:
        return sample(
            self.model.problem,
            self.data.y,
            context=self.data.context,
            sampler=sampler,
            n_samples=n_samples,
            seed=self.model.random_state,
            slopes=True,
            n_jobs=self.model.n_jobs,
            store=self.store,
            timeout=self.model.timeout,
            on_failure=self.model.on_failure,
            progress=self.model.verbose,
        )
