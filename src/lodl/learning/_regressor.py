"""From data to a model that decides: the one class most users need."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from lodl._arrays import Features, check_count, check_flag, check_readable, check_seconds, is_frame
from lodl._progress import show_logs
from lodl._typing import Array, Context, Decision
from lodl.errors import NotFittedError
from lodl.evaluation import constant_predictions
from lodl.learning._data import Data
from lodl.learning._folds import Average, Folds, Groups
from lodl.learning._held_out import HeldOut
from lodl.learning._model_folder import write_model
from lodl.learning._new_instances import Expected
from lodl.learning._oracle_budget import say_cost
from lodl.learning._parameters import Parameters
from lodl.learning._planned import check_parameters, planned
from lodl.learning._record import record_of
from lodl.learning._search import AT_LABELS, Search, Tried
from lodl.learning._split import Validation, split
from lodl.learning._summary import summary_of
from lodl.losses import Family, LearnedLoss
from lodl.oracle import ObjectiveKind, Oracle, Samples
from lodl.problems import Problem
from lodl.problems._problem import in_label_columns, label_names_of, projected
from lodl.report import FitResult
from lodl.samplers import Sampler
from lodl.training import Predictor, learner_for

_ROUTING = (
    " scikit-learn's searches and `cross_val_score` pass it on after "
    "`sklearn.set_config(enable_metadata_routing=True)`."
)

_logger = logging.getLogger(__name__)


class DecisionFocusedRegressor(Parameters):
    """A regressor trained for the decisions that are made from its predictions.

    `fit` trains the model on squared error (the "2-stage" baseline) and on several losses learned
    from the solver's answers. It keeps what decides best on held-out instances: the average of
    these models (and of the baseline, if that is hardly worse), the best one if it is clearly
    better, or the baseline alone if that does not beat it. With fewer than 3000 instances, models
    are judged by five-fold cross-validation; the folds share all answers, and their models are
    averaged.

    If the objective is affine in the label and there is no context, instances share their
    decisions (`lodl.losses.fit_shared`), and fifteen solver calls per instance are enough to
    learn from.

    Args:
        oracle: The problem whose solver makes the decisions; or a `lodl.Oracle` of it, which has
            workers, a store, a time limit and a policy for failures. With a store, a killed `fit`
            resumes where it stopped, and a `fit` with another estimator only calls the solver where
            its own models predict. If failed calls are skipped, a held-out decision that fails
            counts as the worst one of the baseline.
        estimator: A scikit-learn, XGBoost, LightGBM or CatBoost regressor, a pipeline, a PyTorch
            module, a `lodl.training.Learner`, or None for a linear model.
        families: Losses to try; None is a selection of decision families and, if the objective is
            not affine in the label, one that learns from regrets.
        n_samples: Predictions sampled around each label. None is 10 if instances share their
            decisions; with a context 16, or 6 from 500 instances on; and 50 if a loss is to be
            fitted to regrets, as for objectives that are not affine in the label.
        n_rounds: Rounds of further samples around held-out predictions, first those of the
            baseline. None is 2 if instances share their decisions, else 4.
        n_per_round: Samples per instance and round.
        ensemble: Whether to average the models of all losses, and those of all folds. If False, one
            model is kept and trained on all instances. (An average of linear models is itself
            linear.)
        shuffle: Whether held-out instances are drawn at random. For data in time order, False holds
            out the last ones if `validation` is a share, and consecutive blocks as folds.
        max_calls: Limit on solver calls, or None. Rounds are dropped first, then samples.
        max_seconds: Seconds after which no further model is tried, or None. With a limit, the
            result depends on the speed of the machine.
        judge: Who makes the held-out decisions that models are compared by. "pool" takes the
            cheapest of the decisions that instances share, which needs no solver calls; only the
            model that is kept and the baseline are judged by the solver in the end. For instances
            that share their decisions, and solvers that are exact.
        random_state: Random seed for samples, folds and training. The same seed gives the same
            model.
        verbose: Whether to say on standard error what it will cost and what is tried, and to show
            progress bars on a terminal.

    Attributes:
        chosen_: What was kept, in words.
        history_: A `HistoryRow` for every model that was tried.
        two_stage_: The baseline, the same model trained on squared error with the same care. Its
            `predict(X)` is what you would have predicted without a learned loss.
        gain_: The held-out regret of the kept model and of the baseline, with an interval of the
            difference.
        held_out_: The regrets and predictions that `gain_` was computed from.
        loss_: The learned loss of the kept model, or of the best one if it averages several.
        n_oracle_calls_: Solver calls made by `fit`: those that the store could not answer, and a
            few that check the problem and the store.
        seconds_: How long `fit` took.
        n_features_in_: Number of features.
        feature_names_in_: Columns of the features, if they were a data frame.
        label_names_: Columns of the labels, if they were a data frame, else the problem's
            `label_names`, or None.

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

    _DEFAULTS = {"fit": {"context": True, "groups": True}, "score": {"context": True}}  # noqa: RUF012
    _record: FitResult | None
    _used: Oracle | None = None

    def __init__(
        self,
        oracle: Problem | Oracle,
        estimator: Any = None,
        *,
        families: Sequence[Family] | None = None,
        n_samples: int | None = None,
        n_rounds: int | None = None,
        n_per_round: int = 2,
        ensemble: bool = True,
        shuffle: bool = True,
        max_calls: int | None = None,
        max_seconds: float | None = None,
        judge: Literal["solver", "pool"] = "solver",
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        self.oracle = oracle
        self.estimator = estimator
        self.families = families
        self.n_samples = n_samples
        self.n_rounds = n_rounds
        self.n_per_round = n_per_round
        self.ensemble = ensemble
        self.shuffle = shuffle
        self.max_calls = max_calls
        self.max_seconds = max_seconds
        self.judge = judge
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Features,  # noqa: N803 - as in scikit-learn
        Y: npt.ArrayLike,  # noqa: N803
        *,
        context: Context = None,
        validation: Validation = None,
        groups: Groups = None,
    ) -> Self:
        """Train on several losses, and keep what decides best on held-out instances.

        Frames are matched by name, here and in all other methods, and arrays by position. Columns
        may come in any order. Rows of `X`, `Y`, `context` and `groups` must have the same index in
        the same order. Exact copies of an instance are held out together.

        Args:
            X: Features, shape (n, p), or (n, items, p) for one model that predicts each item's part
                of the label. A pandas or polars frame is passed on as it is to estimators that take
                frames, with categories and missing values; for others it must hold numbers.
                Categories are matched by name, and one that `fit` did not see counts as missing.
                The index of a pandas frame names the instances in reports.
            Y: Labels, shape (n, *label_shape), or a frame with a column for each number of a label.
                With shape (n,), the problem gets labels of shape (1,) and `predict` returns (n,).
            context: One entry per instance, or None. From a frame, each row becomes a dict.
            validation: How to choose: a number of folds, a share of the instances to hold out, or
                separate instances as a tuple `(X, Y)` or `(X, Y, context)`. None means five folds,
                or a held-out fifth from 3000 instances on.
            groups: The group of each instance (a customer, a day), or None. A group is held out as
                a whole.
        """
        started = time.perf_counter()
        for name in ("ensemble", "shuffle", "verbose"):
            check_flag(name, getattr(self, name))
        deadline = started + check_seconds("max_seconds", self.max_seconds)
        if self.verbose:
            show_logs()
        oracle = self._new_oracle()
        n_before = oracle.n_calls
        seed = check_count("random_state", self.random_state, minimum=0)
        learner = learner_for(self.estimator, seed=seed)
        keeps_frames = learner.takes_frames
        labels = in_label_columns(self.problem, Y, "Y")
        if is_frame(X) and not _has_pipeline(self.estimator):
            check_readable(X, "X")
        data = Data.of(X, labels, context, keeps_frames=keeps_frames)
        data, folds = split(data, validation, groups, shuffle=self.shuffle, seed=seed, rows=X)
        label_names = data.label_names or label_names_of(self.problem, data.y[0].size)
        check_parameters(self, data.y[0].size)
        instances = oracle.instances(data.y, data.context)
        families = self.families
        slopes = families is None or any(family.uses_slopes for family in families)
        how: Any = {"slopes": slopes or self.judge == "pool", "random_state": seed}

        def ask(sampler: Sampler, n_samples: int) -> Samples:
            return oracle.sample(instances, sampler, n_samples, **how)

        search = Search(
            data.x,
            data.y,
            learner,
            folds,
            ask,
            lambda: oracle.n_calls - n_before,
            started,
            deadline,
            project=partial(projected, self.problem),
            solver_judges=self.judge == "solver",
        )
        search.train_two_stage()
        is_affine = oracle.objective_kind(instances, AT_LABELS, **how) is ObjectiveKind.AFFINE
        plan, tried, search.shares = planned(self, data, learner, is_affine=is_affine)
        n_models = plan.n_losses * len(folds.held_out)
        say_cost(plan, oracle, n_instances=len(data.y), n_models=n_models)
        chosen, two_stage = search.run(tried, plan, ensemble=self.ensemble)
        final = np.arange(folds.n_final)
        predictors = search.models(chosen, ensemble=self.ensemble)
        baselines = search.models(two_stage, ensemble=self.ensemble)
        # Nothing below can fail: a `fit` that does leaves the fitted model as it was.
        self.predictors_: list[Predictor] = predictors
        self.label_names_, self._keeps_frames = label_names, keeps_frames
        self._keep_data(data, final)
        self.two_stage_ = Average(baselines, data.label_shape, self._expected.features)
        self._keep_choice(chosen, folds, search.held_out(data, two_stage, chosen))
        self.gain_, self.history_ = self.held_out_.gain(self.problem.unit), search.history
        self.n_oracle_calls_, self._used = oracle.n_calls - n_before, oracle
        self.seconds_ = time.perf_counter() - started
        _logger.info("%s: %s", self.chosen_, self.gain_)
        return self

    def predict(self, X: Features) -> Array:  # noqa: N803
        """Return predictions in the shape that the labels had, (n, *label_shape)."""
        y_hat = self._predict(X)
        return y_hat.reshape(len(y_hat), *self.label_shape_)

    def _predict(self, X: Features) -> Array:  # noqa: N803
        """Return predictions as the problem gets them."""
        expected = self._expected  # raises if there is no model yet
        y_hat = Average(self.predictors_, features=expected.features).predict(X)
        return np.asarray(self.mean_ + self.kept_ * (y_hat - self.mean_))

    def decide(
        self,
        X: Features,  # noqa: N803
        context: Context = None,
    ) -> list[Decision]:
        """Return the solver's decision for each instance, one solver call each.

        If the oracle skips failed calls, the decision is None where the call failed.
        """
        contexts = self._expected.contexts(X, context)
        return self._calls.decide(self._predict(X), context=contexts)

    def regret(
        self,
        X: Features,  # noqa: N803
        Y: npt.ArrayLike,  # noqa: N803
        context: Context = None,
    ) -> Array:
        """Return how much more each decision costs than the best one, in the objective's unit."""
        expected = self._expected
        labels, contexts = expected.labels(X, Y), expected.contexts(X, context)
        return self._calls.regret(self._predict(X), labels, context=contexts)

    def score(
        self,
        X: Features,  # noqa: N803
        Y: npt.ArrayLike,  # noqa: N803
        context: Context = None,
    ) -> float:
        """Return how much of the regret of always predicting the mean is avoided.

        1 is perfect, 0 is as good as predicting the mean training label, and worse is negative.
        """
        labels = self._expected.labels(X, Y)
        contexts = self._expected.contexts(X, context, advice=_ROUTING)  # scikit-learn calls this
        constant = np.broadcast_to(self.mean_, labels.shape)
        y_hats = np.stack([self._predict(X), constant])
        regret = self._calls.regret(y_hats, labels, context=contexts)
        known = np.isfinite(regret).all(axis=0)
        ours, constants = regret[:, known].mean(axis=1)
        if constants == 0:
            return 1.0 if ours == 0 else -np.inf
        return float(1 - ours / constants)

    def summary(self) -> str:
        """Return what to do, what was gained, what was tried, and what it cost, in a few lines."""
        self._check_fitted()
        return summary_of(self)

    def record(self) -> FitResult:
        """Return what a report shows, as plain data.

        The first time, this calls the solver a few hundred times, to show which decisions changed
        and how the learned loss compares with the true regret.
        """
        self._check_fitted()
        if self._record is None:
            self._record = record_of(self)
        return self._record

    def report(self, path: str | PathLike[str]) -> Path:
        """Write an HTML page about what was gained, tried and spent; return its path.

        It is one file that needs nothing but a browser. The solver is called as by `record`.
        """
        from lodl.report.fit_page import write_page  # matplotlib: only where needed

        return write_page(self.result_, path)

    @property
    def result_(self) -> FitResult:
        """What `fit` tried, selected, gained and cost; see `record`."""
        return self.record()

    def save(self, folder: str | PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the fitted model to a folder that `lodl.load_model` reads; return its path.

        It contains JSON and files in the framework's own format, and no pickle. The problem is code
        and is not saved. Neither is the learned loss, which contains the training labels; save it
        with `model.loss_.save(path)` if you want it.

        Args:
            folder: The folder to create.
            overwrite: Whether to replace a model that already exists.
        """
        self._check_fitted()
        return write_model(self, Path(folder), overwrite=overwrite)

    @property
    def problem(self) -> Problem:
        """The problem whose solver makes the decisions."""
        return self.oracle.problem if isinstance(self.oracle, Oracle) else self.oracle

    def _new_oracle(self) -> Oracle:
        return Oracle.of(self.oracle, progress=self.verbose)

    @property
    def _calls(self) -> Oracle:
        """The oracle that makes the calls after `fit`: that of the last `fit`, if there was one."""
        if self._used is None or self._used.problem is not self.problem:
            self._used = self._new_oracle()
        return self._used

    def _keep_data(self, data: Data, final: npt.NDArray[np.intp]) -> None:
        self.n_features_in_ = int(data.x.shape[-1])
        if data.feature_names is None:
            vars(self).pop("feature_names_in_", None)
        else:
            self.feature_names_in_ = np.array(data.feature_names, dtype=object)
        self.label_shape_ = data.label_shape
        self.has_context_ = data.context is not None
        self.mean_ = constant_predictions(data.y[final], 1)[0]

    def _keep_choice(self, chosen: Tried, folds: Folds, held_out: HeldOut) -> None:
        self.chosen_, self.kept_ = chosen.name, chosen.kept
        self.loss_: LearnedLoss = chosen.parts[0][0]
        self.judged_by_, self.held_out_ = folds.in_words(len(held_out.index)), held_out
        self._record = None

    @property
    def _expected(self) -> Expected:
        """What new instances must look like."""
        self._check_fitted()
        return Expected(
            getattr(self, "feature_names_in_", None),
            self.n_features_in_,
            self._keeps_frames,
            self.label_names_,
            self.mean_.shape,
            self.has_context_,
        )

    def _check_fitted(self) -> None:
        if not hasattr(self, "predictors_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call `fit`.")


def _has_pipeline(estimator: Any) -> bool:
    """Return whether a pipeline, or a learner of the user's, may turn dates into numbers."""
    if not hasattr(estimator, "get_params"):
        return True
    return any(hasattr(part, "steps") for part in (estimator, *estimator.get_params().values()))
