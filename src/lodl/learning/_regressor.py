"""`DecisionFocusedRegressor`: a scikit-learn regressor trained for the decisions it leads to."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from lodl._arrays import Features, check_count, check_flag, check_number, check_readable, is_frame
from lodl._html import notebook_html
from lodl._progress import shown_logs
from lodl._typing import Array, Context, Decision, FilePath
from lodl.errors import InvalidInputError
from lodl.learning._data import Data, new_contexts, new_features, new_instances
from lodl.learning._defaults import Schedule, check_families
from lodl.learning._fit import plan, result_of, search
from lodl.learning._folds import Folds, Models, Trainer
from lodl.learning._rounds import Evidence
from lodl.learning._saved_model import read_model, warn_of_another_problem, write_model
from lodl.learning._search import Contender
from lodl.losses import Family, LearnedLoss, squared_error_loss
from lodl.oracle import Oracle
from lodl.problems import Problem
from lodl.problems._problem import check_problem_type, in_label_columns, label_names_of
from lodl.report import BASELINE, MEAN_LABEL, PLAIN, Evaluation, FitResult
from lodl.samplers import AtPredictions
from lodl.training import Learner, Predictor, learner_for

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Average:
    """The mean prediction of models, shrunk towards the mean label, then shifted."""

    models: Sequence[Predictor]
    result: FitResult
    shift: tuple[float, ...] = ()
    shrinkage: float = 0.0

    def predict(self, X: Features) -> Array:
        """Return predictions in the shape that the labels had in `fit`, (n, *label_shape)."""
        x, shape = new_features(self.result, X), self.result.label_shape
        y_hat = np.asarray(np.mean([model.predict(x) for model in self.models], axis=0))
        y_hat = y_hat.reshape(len(y_hat), *shape)
        if self.shrinkage:
            mean = np.reshape(self.result.mean_label, shape)
            y_hat = mean + (1 - self.shrinkage) * (y_hat - mean)
        if self.shift:
            y_hat = y_hat + np.reshape(self.shift, shape)
        return np.asarray(y_hat)


class DecisionFocusedRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor trained for the decisions that are made from its predictions.

    `fit` trains the model on squared error (the baseline) and on several losses learned from the
    solver's answers. It selects what decides best on validation instances: the average of these
    models (and of the baseline, if that is hardly worse), the best one if it is clearly better, or
    squared error if nothing beats it. The models of all folds share all answers and are averaged.

    If the objective is affine in the label, instances share their decisions, or what their contexts
    allow of them (`LinearProblem.are_feasible`). If it is not affine, losses are fitted to all
    instances together, at half the size of the baseline's errors, and shifted predictions compete.

    Args:
        oracle: The problem whose solver makes the decisions, or a `lodl.Oracle` of it, which has
            workers, a store, a time limit and a policy for failures. With a store, a killed `fit`
            resumes, and a `fit` with another estimator only calls the solver where its own models
            predict. A skipped validation decision counts as the baseline's worst one.
        estimator: A scikit-learn, XGBoost, LightGBM or CatBoost regressor, a pipeline, a PyTorch
            module, or a `lodl.training.Learner`. Defaults to a linear model.
        families: Losses to try. Defaults to decision families, and to one that learns from regrets
            if the objective is not affine: besides them, or alone if there is a kink at the label.
        n_samples: Points sampled around each label. `lodl.learning.Schedule` has the defaults.
        n_rounds: Most rounds of further points where the models predict, first the baseline.
        max_calls: Limit on solver calls, at least one per instance and about 20 more. Rounds are
            dropped first, then samples; if it is small, estimates compare models.
        max_seconds: Seconds after which no further model is tried.
        ensemble: Whether to average the models of all losses, and those of all folds. If False, one
            model is selected and trained on all instances.
        random_state: Random seed for samples, folds and training.
        verbose: Whether to log cost and progress to standard error. Bars of calls that take longer
            appear anyway, on a terminal or in a notebook, as does a cost of more than a minute.

    Attributes:
        result_: A `lodl.report.FitResult`: models, regrets, gain and cost.
        plain_: The estimator trained on squared error on all rows, `clone(estimator).fit(X, Y)`. It
            predicts if squared error is selected; PyTorch modules average those of folds.
        baseline_: The same model trained on squared error with the folds of the other models.
        loss_: The learned loss of the selected model, or of the best one if it averages several.
        predictors_: The trained models whose mean predicts.
        n_features_in_: Number of features.
        feature_names_in_: Columns of the features, if they were a data frame.

    Example:
        >>> from sklearn.linear_model import LinearRegression
        >>> domain = lodl.domains.knapsack(sizes=(40, 1, 5))
        >>> train, test = domain.splits.train, domain.splits.test
        >>> model = lodl.DecisionFocusedRegressor(
        ...     domain.problem, LinearRegression(), families=[lodl.DecisionHinges()], n_rounds=1
        ... )
        >>> model.fit(train.x, train.y).predict(test.x).shape
        (5, 16)
        >>> len(model.decide(test.x))
        5
        >>> "regret" in model.summary()
        True
    """

    # scikit-learn passes these on by default, once routing is switched on.
    __metadata_request__fit = {"context": True, "groups": True}  # noqa: RUF012
    __metadata_request__score = {"context": True}  # noqa: RUF012

    feature_names_in_: npt.NDArray[Any]
    _used: Oracle | None = None

    def __init__(
        self,
        oracle: Problem | Oracle,
        estimator: Any = None,
        *,
        families: Sequence[Family] | None = None,
        n_samples: int | None = None,
        n_rounds: int | None = None,
        max_calls: int | None = None,
        max_seconds: float | None = None,
        ensemble: bool = True,
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        self.oracle = oracle
        self.estimator = estimator
        self.families = families
        self.n_samples = n_samples
        self.n_rounds = n_rounds
        self.max_calls = max_calls
        self.max_seconds = max_seconds
        self.ensemble = ensemble
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Features,
        Y: npt.ArrayLike,
        *,
        context: Context = None,
        validation: Any = None,
        groups: Sequence[Any] | npt.NDArray[Any] | None = None,
    ) -> Self:
        """Train on several losses, and select what decides best on validation instances.

        Columns of frames are matched by name, here and in all other methods. Rows of all arguments
        must have the same index in the same order. Copies of an instance are held out together.

        Args:
            X: Features, shape (n, p), or (n, items, p) for one model that predicts each item's part
                of the label. Estimators that take frames get a pandas or polars frame as it is; for
                others it must hold numbers. Categories are matched by name, and an unseen one
                counts as missing. The index of a pandas frame names the instances in reports.
            Y: Labels, shape (n, *label_shape), or a frame with a column for each number of a label.
                With shape (n,), the problem gets labels of shape (1,) and `predict` returns (n,).
            context: One entry per instance, or None. From a frame, each row becomes a dict.
            validation: A number of folds, a share of the instances to hold out, a splitter of
                scikit-learn such as `TimeSeriesSplit()`, or separate instances as a tuple `(X, Y)`
                or `(X, Y, context)`. Defaults to five folds, or a held-out fifth from 3000
                instances on. Folds are random, unless the index or a column of a frame holds dates
                in their order: then folds are consecutive blocks, and a share is the latest.
            groups: The group of each instance, or None. Random folds hold out whole groups.
        """
        with shown_logs(self.verbose):
            evidence, trainer, squared_error = self._begin(X, Y, context, validation, groups)
            _logger.log(*plan(evidence, trainer))
            outcome = search(evidence, trainer, squared_error, ensemble=self.ensemble)
            baseline, selected = outcome.baseline, outcome.selected
            plain, is_own = trainer.train_plainly(squared_error.loss, baseline.model)
            baselines = trainer.final(baseline.parts, ensemble=self.ensemble)
            if selected.is_baseline:
                # Corrections were found for the baseline, which early stopping makes another model.
                has_own = is_own and not (trainer.learner.stops_early and selected.is_corrected)
                predictors = [plain] if has_own else baselines
            else:
                predictors = trainer.final(selected.parts, ensemble=self.ensemble)
            result = result_of(evidence, trainer, outcome, self.get_params(deep=False))
            # Nothing below can fail: a `fit` that does leaves the fitted model as it was.
            self._set(result, predictors, baselines, [plain])
            self.loss_: LearnedLoss = selected.loss
            self._used, self._out_of_fold = evidence.oracle, selected.y_hat
            if self.verbose:
                _logger.info("%s: %s", result.selected_name, result.verdict)
            return self

    def plan(
        self,
        X: Features,
        Y: npt.ArrayLike,
        *,
        context: Context = None,
        validation: Any = None,
        groups: Sequence[Any] | npt.NDArray[Any] | None = None,
    ) -> str:
        """Return the most solver calls that `fit` makes with these arguments, and their time.

        It trains the model on squared error and times about 20 calls at three instances.
        """
        _, text, *numbers = plan(*self._begin(X, Y, context, validation, groups)[:2])
        return str(text) % tuple(numbers)

    def predict(self, X: Features) -> Array:
        """Return predictions in the shape that the labels had, (n, *label_shape)."""
        result = self._result
        return Average(self.predictors_, result, result.shift, result.shrinkage).predict(X)

    def decide(self, X: Features, context: Context = None) -> list[Decision]:
        """Return the solver's decision for each instance, None if a failed call is skipped."""
        contexts = new_contexts(self._result, X, context)
        return self._calls.decide(self._for_solver(self.predict(X)), context=contexts)

    def regret(self, X: Features, Y: npt.ArrayLike, context: Context = None) -> Array:
        """Return how much more each decision costs than the best one, in the objective's unit."""
        labels, contexts = new_instances(self._result, X, Y, context)
        return self._calls.regret(self._for_solver(self.predict(X)), labels, context=contexts)

    def evaluate(
        self,
        X: Features,
        Y: npt.ArrayLike,
        context: Context = None,
        *,
        problem: Problem | Oracle | None = None,
    ) -> Evaluation:
        """Compare the decisions of this model with simpler ones, on data that `fit` did not see.

        Print the result for a table: the plain model, the mean training label, squared error as
        trained next to the learned losses, the same with the best simple correction that `fit`
        found, if any, and this model. It takes at most six solver calls per instance.

        `problem` decides instead of the problem that the model was trained for. A loss is learned
        for one feasible set, so evaluate under a changed capacity, budget or network before use.
        """
        result = self._result
        labels, contexts = new_instances(result, X, Y, context)
        corrected = Average(self.baseline_.models, result, result.baseline_shift)
        mean = np.reshape(result.mean_label, labels.shape[1:])
        y_hats = {
            PLAIN: self.plain_.predict(X),
            MEAN_LABEL: np.broadcast_to(mean, labels.shape),
            BASELINE: self.baseline_.predict(X),
            f"{BASELINE}, corrected": corrected.predict(X),
            "this model": self.predict(X),
        }
        oracle, regrets = self._calls if problem is None else Oracle.of(problem), {}
        n_before, instances = oracle.n_calls, oracle.instances(labels, contexts)
        for name, y_hat in y_hats.items():
            sampler = AtPredictions(self._for_solver(y_hat), scale=1.0, n_exact=1)
            samples = oracle.sample(instances, sampler, 1)
            regrets[name] = samples.first_regrets()
        n_calls = oracle.n_calls - n_before
        return Evaluation.of(regrets, samples.optimum, unit=result.unit, n_calls=n_calls)

    def score(
        self, X: Features, y: npt.ArrayLike, context: Context = None, *, sample_weight: Any = None
    ) -> float:
        """Return the share of the mean label's regret that is avoided: 1 is perfect, 0 is none."""
        labels, contexts = new_instances(self._result, X, y, context, in_score=True)
        mean = np.reshape(self._result.mean_label, labels.shape[1:])
        y_hats = np.stack(np.broadcast_arrays(self._for_solver(self.predict(X)), mean))
        regret = self._calls.regret(y_hats, labels, context=contexts)
        known = np.isfinite(regret).all(axis=0)
        weights = None if sample_weight is None else np.asarray(sample_weight)[known]
        ours, constants = np.average(regret[:, known], axis=1, weights=weights)
        if constants == 0:
            return 1.0 if ours == 0 else -np.inf
        return float(1 - ours / constants)

    def summary(self) -> str:
        """Return verdict, trials and cost in a few lines of text."""
        return self._result.summary()

    def report(
        self,
        path: FilePath,
        X: Features = None,
        Y: npt.ArrayLike | None = None,
        context: Context = None,
    ) -> Path:
        """Write a self-contained HTML page about gain, decisions and cost; return its path.

        With features and labels that `fit` did not see, the page leads with the result of
        `evaluate`, otherwise with the validation regrets, which are a little too good.
        """
        from lodl.report.fit_page import write_page  # needs the extra `report`

        if (X is None) != (Y is None):
            raise InvalidInputError("`X` and `Y` must be given together, or neither of them.")
        evaluation = None if X is None or Y is None else self.evaluate(X, Y, context)
        return write_page(self._result, path, evaluation)

    def save(self, folder: FilePath, *, overwrite: bool = False) -> Path:
        """Write the fitted model to a folder that `lodl.load_model` reads; return its path.

        It contains JSON and files in the framework's own format, and no pickle. The problem, which
        is code, and the learned loss, which contains the training labels, are not saved:
        `model.loss_.save(path)` writes the loss. Only `overwrite=True` replaces a model.
        """
        averages = {"baseline": self.baseline_.models, "plain": self.plain_.models}
        models = {"predictors": self.predictors_, **averages}
        return write_model(Path(folder), self._result, models, overwrite=overwrite)

    @property
    def problem(self) -> Problem:
        """The problem whose solver makes the decisions."""
        return self.oracle.problem if isinstance(self.oracle, Oracle) else self.oracle

    @property
    def _result(self) -> FitResult:
        check_is_fitted(self, "result_")
        return self.result_

    def _for_solver(self, y_hat: Array) -> Array:
        """Return predictions as the problem gets them: with an axis for labels of one number."""
        return y_hat.reshape(len(y_hat), *(self._result.label_shape or (1,)))

    @property
    def _calls(self) -> Oracle:
        """The oracle of the last `fit`, or a new one for a model that was loaded."""
        if self._used is None or self._used.problem is not self.problem:
            self._used = Oracle.of(self.oracle)
        return self._used

    def _begin(
        self, x: Any, y: Any, context: Any, validation: Any, groups: Any
    ) -> tuple[Evidence, Trainer, Contender]:
        """Train on squared error, and find out by a few calls what kind of objective there is."""
        started = time.perf_counter()
        check_flag("ensemble", self.ensemble)
        check_flag("verbose", self.verbose)
        limit = math.inf if self.max_seconds is None else self.max_seconds
        limit = check_number("max_seconds", limit, is_finite=False, at_least=0)
        schedule = Schedule(self.n_samples, self.n_rounds, max_calls=self.max_calls)
        oracle = Oracle.of(self.oracle)
        seed = check_count("random_state", self.random_state, minimum=0)
        learner = learner_for(self.estimator, seed=seed)
        data, folds = self._data(x, y, context, validation, groups, learner)
        check_families(self.families, data.y[0].size)
        trainer = Trainer(learner, data, folds)
        # Before the first solver call, as the model may not be able to take the data.
        loss = squared_error_loss(data.y)
        models, y_hat = trainer.train(loss)
        squared_error = Contender(BASELINE, 0, y_hat, ((loss, models),), is_baseline=True)
        instances = oracle.instances(data.y, data.context)
        evidence = Evidence.of(
            oracle, instances, self.families, schedule, seed, started=started, max_seconds=limit
        )
        return evidence, trainer, squared_error

    def _data(
        self, x: Any, y: Any, context: Any, validation: Any, groups: Any, learner: Learner
    ) -> tuple[Data, Folds]:
        """Return all instances, and which of them train and validate."""
        if y is None:
            name = type(self).__name__
            raise InvalidInputError(f"{name} requires y to be passed, but the target y is None.")
        if is_frame(x) and not _has_pipeline(self.estimator):
            check_readable(x, "X")
        labels = in_label_columns(self.problem, y, "Y")
        data = Data.of(x, labels, context, takes_frames=learner.takes_frames)
        if not isinstance(validation, tuple):
            folds = Folds.of(data, validation, groups, seed=self.random_state, rows=x)
        elif groups is None:
            n, data = len(data.y), data.followed_by(validation)
            folds = Folds.given(data, n)
        else:
            raise InvalidInputError("`groups` must be None if `validation` gives instances.")
        names = data.label_names or label_names_of(self.problem, data.y[0].size)
        return replace(data, label_names=names), folds

    def _set(self, result: FitResult, predictors: Models, baseline: Models, plain: Models) -> None:
        self.result_, self.predictors_ = result, predictors
        self.baseline_, self.plain_ = Average(baseline, result), Average(plain, result)
        self.n_features_in_ = result.n_features
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if result.feature_names is not None:
            self.feature_names_in_ = np.array(result.feature_names, dtype=object)

    def _html_repr(self) -> str:
        """Return scikit-learn's HTML, with the verdict if the model is fitted."""
        verdict = notebook_html("", [self.result_.verdict]) if hasattr(self, "result_") else ""
        return f"{super()._html_repr()}{verdict}"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.three_d_array = True
        has_tags = hasattr(type(self.estimator), "__sklearn_tags__")  # our linear model has none
        tags.input_tags.allow_nan = has_tags and get_tags(self.estimator).input_tags.allow_nan
        return tags


def load_model(
    folder: FilePath, problem: Problem, estimator: Any = None, *, trusted: Sequence[str] = ()
) -> DecisionFocusedRegressor:
    """Return the model that `DecisionFocusedRegressor.save` wrote; it predicts the same bits.

    Args:
        folder: The folder. `ModelFolderError` says why it cannot be used.
        problem: The problem that decides, which a folder does not hold: it is code. A warning is
            logged if its class or plain constructor parameters are not those of `fit`.
        estimator: The untrained PyTorch module of a model that was one, for the same reason.
        trusted: Types that the file of a scikit-learn model may hold besides those that cannot do
            harm. The error of a model that needs more names them.
    """
    check_problem_type(problem)
    result, parameters, models = read_model(Path(folder), estimator, trusted)
    warn_of_another_problem(problem, result)
    model = DecisionFocusedRegressor(problem, estimator, **parameters)
    model._set(result, **models)
    return model


def _has_pipeline(estimator: Any) -> bool:
    """Return whether a pipeline, or a custom learner, may turn dates into numbers."""
    if not hasattr(estimator, "get_params"):
        return True
    return any(hasattr(part, "steps") for part in (estimator, *estimator.get_params().values()))
