"""Models of effects: two stages, squared error on labels of the trial, and learned losses."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from lightgbm import LGBMRegressor
from sklearn.linear_model import LinearRegression

from lodl import DecisionFocusedRegressor, DecisionHinges, DecisionRanking, Oracle
from lodl._typing import Array
from lodl_benchmarks.budget._labels import TLearner, doubly_robust, drawn_together
from lodl_benchmarks.budget._trial import COSTS, Trial
from lodl_benchmarks.domains import Budget, cut_of, steps_of

Predict = Callable[[Array], Array]
"""Predicts the effects (n, T) on customers from their features (n, p)."""

RANGE = (0.2, 1.0)
"""The budgets per customer that batches have."""

_SIZE, _N_BATCHES = 200, 400  # customers in a batch, and batches that a loss is learned for
_FAMILIES = (DecisionHinges(squared_error=1.0), DecisionRanking(squared_error=1.0))
_N_ROUNDS = 2


@dataclass(frozen=True, eq=False)
class Data:
    """A trial and labels of its customers, made on first use."""

    trial: Trial
    size: int = _SIZE  # customers in a batch
    n_batches: int = _N_BATCHES  # the most batches
    way: float = 1.0  # to the predictions of a model that has seen the other labels

    @cached_property
    def labels(self) -> Array:
        """Unbiased labels: doubly robust estimates."""
        return doubly_robust(self.trial, new_lightgbm)

    @cached_property
    def drawn(self) -> Array:
        """Labels with less noise and some bias."""
        return drawn_together(self.trial.x, self.labels, new_small_lightgbm, self.way)

    @cached_property
    def two_stage(self) -> TLearner:
        """The usual model of uplift, which two rules use."""
        return TLearner(new_lightgbm, self.trial)


def new_lightgbm() -> LGBMRegressor:
    """Return the model of responses: LightGBM with its defaults, on one thread."""
    return LGBMRegressor(n_jobs=1, verbosity=-1)  # threads that wait for each other take longer


def new_small_lightgbm() -> LGBMRegressor:
    """Return a model of noisy labels: small trees of many customers a leaf."""
    leaves: Any = {"num_leaves": 8, "min_child_samples": 200}
    return LGBMRegressor(n_jobs=1, learning_rate=0.05, **leaves, verbosity=-1)


def squared_error(x: Array, y: Array, new_model: Callable[[], Any]) -> Predict:
    """Return a model of the labels of each treatment."""
    models = [new_model().fit(x, labels) for labels in y.T]
    return lambda x: np.column_stack([model.predict(x) for model in models])


def learned(data: Data, estimator: Any = None) -> Predict:
    """Return a model trained by `DecisionFocusedRegressor` on batches with random budgets."""
    return partial(predict_customers, fit_batches(data, estimator))


def fit_batches(data: Data, estimator: Any = None) -> DecisionFocusedRegressor:
    """Fit a regressor to batches of customers."""
    n = min(len(data.trial.x) // data.size, data.n_batches)
    x, y = (part[: n * data.size].reshape(n, data.size, -1) for part in (data.trial.x, data.drawn))
    budgets = data.size * np.random.default_rng(0).uniform(*RANGE, size=n)
    oracle = Oracle(Budget(COSTS), progress=False)
    model = DecisionFocusedRegressor(oracle, estimator, families=_FAMILIES, n_rounds=_N_ROUNDS)
    return model.fit(x, y, context=budgets, validation=0.2)


def predict_customers(model: DecisionFocusedRegressor, x: Array) -> Array:
    """Return the effects on customers (n, T) that a model of batches predicts.

    A batch has no order, so what the model adds to each of its places is averaged over places.
    """
    result = model.result_
    size, n_treatments = result.label_shape
    rest = np.repeat(x[-1:], -len(x) % size, axis=0)
    batches = np.concatenate([x, rest]).reshape(-1, size, x.shape[1])
    y_hat = np.mean([part.predict(batches) for part in model.predictors_], axis=0)
    y_hat = y_hat.reshape(-1, n_treatments)[: len(x)]
    mean = np.reshape(result.mean_label, (size, n_treatments)).mean(axis=0)
    y_hat = mean + (1 - result.shrinkage) * (y_hat - mean)
    if result.shift:
        y_hat = y_hat + np.reshape(result.shift, (size, n_treatments)).mean(axis=0)
    return np.asarray(y_hat)


def treatments_by_price(effects: Array, budget: float) -> npt.NDArray[Any]:
    """Return the treatment of each customer, -1 for none, by a price on the budget."""
    steps = steps_of(effects, np.array(COSTS))
    return steps.chosen(cut_of(steps, budget))


def treatments_by_ratio(effects: Array, budget: float) -> npt.NDArray[Any]:
    """Return treatments by effect per money: each customer's best ratio, in order of ratios."""
    ratio = effects / np.array(COSTS)
    best = ratio.argmax(axis=1)
    highest = ratio.max(axis=1)
    order = np.argsort(-highest, kind="stable")
    spent = np.cumsum(np.array(COSTS)[best[order]])
    paid = order[(spent <= budget) & (highest[order] > 0)]
    chosen = np.full(len(effects), -1)
    chosen[paid] = best[paid]
    return chosen


@dataclass(frozen=True)
class Method:
    """A way to predict effects and to spend a budget."""

    fit: Callable[[Data], Predict]
    choose: Callable[[Array, float], npt.NDArray[Any]] = treatments_by_price
    is_learner: bool = False


METHODS: Mapping[str, Method] = {
    "2-stage, LightGBM": Method(lambda data: data.two_stage.predict),
    "the same, greedy by ratio": Method(lambda data: data.two_stage.predict, treatments_by_ratio),
    "2-stage, linear": Method(lambda data: TLearner(LinearRegression, data.trial).predict),
    "squared error, LightGBM": Method(
        lambda data: squared_error(data.trial.x, data.labels, new_small_lightgbm)
    ),
    "squared error, linear": Method(
        lambda data: squared_error(data.trial.x, data.labels, LinearRegression)
    ),
    "the same, smooth labels": Method(
        lambda data: squared_error(data.trial.x, data.drawn, LinearRegression)
    ),
    "lodl, LightGBM": Method(partial(learned, estimator=new_small_lightgbm()), is_learner=True),
    "lodl, linear": Method(learned, is_learner=True),
}
"""The methods by name."""
