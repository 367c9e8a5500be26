"""Methods of the founding table: as published, on all rows, and our learner."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LinearRegression

from lodl import DecisionFocusedRegressor
from lodl._typing import Array
from lodl.domains import Domain, ShortestPath
from lodl.oracle import Oracle
from lodl.problems import LinearProblem
from lodl.problems._problem import sign_of
from lodl_benchmarks.domains import all_paths
from lodl_benchmarks.learner import MODELS
from lodl_benchmarks.real import Split
from lodl_benchmarks.real._spo_plus import spo_plus as by_gradients
from lodl_benchmarks.spo._exact import predict, spo_plus_weights

OURS = "lodl"
LEAST_SQUARES, SPO_PLUS = "least squares", "SPO+"
SPO_PLUS_ALL = "SPO+, all rows"

_STRENGTHS = tuple(np.geomspace(1e-6, 100, 10).tolist())  # L1 penalties, as published
_MOST_PENALISED = 1000  # instances; larger data have no penalty, as published
_N_TREES = 100


@dataclass(frozen=True, eq=False)
class Outcome:
    """Test predictions, and how they came about."""

    y_hat: Array
    note: str = ""  # selected parameters
    n_calls: int | None = None  # solver calls, for methods that learn by them


Method = Callable[[Domain], Outcome]


def _is_path(domain: Domain) -> bool:
    return isinstance(domain.problem, ShortestPath)


def least_squares(domain: Domain) -> Outcome:
    """Least squares as published: for paths, an L1 penalty that validation decisions select."""
    train = domain.splits.train
    if len(train.y) > _MOST_PENALISED or not _is_path(domain):
        model = LinearRegression().fit(train.x, train.y)
        return Outcome(model.predict(domain.splits.test.x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of the least strength
        models = [
            Lasso(alpha=strength, max_iter=20_000, tol=1e-6).fit(train.x, train.y)
            for strength in _STRENGTHS
        ]
    return _best(domain, [model.predict for model in models])


def least_squares_on_all(domain: Domain) -> Outcome:
    """Least squares on training and validation rows, without a penalty."""
    data = domain.splits.train_and_validation
    return Outcome(LinearRegression().fit(data.x, data.y).predict(domain.splits.test.x))


def spo_plus(domain: Domain) -> Outcome:
    """SPO+ as published: an L1 penalty that validation decisions select.

    Portfolios have no finite list of decisions, so that SPO+ is minimised by stochastic gradients,
    as published; held-out decisions select rate and epochs, and all rows train the model.
    """
    if not _is_path(domain):
        data, test = domain.splits.train_and_validation, domain.splits.test
        split = Split(domain.problem, data.x, data.y, test.x, test.y, is_ordered=False)
        outcome = by_gradients(split, LinearRegression())
        return Outcome(outcome.y_hat, outcome.note)
    train, paths = domain.splits.train, all_paths(domain.problem)  # type: ignore[arg-type]
    penalties = _STRENGTHS if len(train.y) <= _MOST_PENALISED else (0.0,)
    weights = spo_plus_weights(train.x, train.y, paths, penalties)
    return _best(domain, [partial(predict, of_one) for of_one in weights])


def spo_plus_on_all(domain: Domain) -> Outcome:
    """SPO+ on training and validation rows, without a penalty."""
    data, paths = domain.splits.train_and_validation, all_paths(domain.problem)  # type: ignore[arg-type]
    (weights,) = spo_plus_weights(data.x, data.y, paths)
    return Outcome(predict(weights, domain.splits.test.x))


def forest(domain: Domain) -> Outcome:
    """A forest per arc on the training rows, with the defaults of the published package.

    Two of six features a split, of which one is the constant; trees of 70 % of the rows, at least
    5 a leaf.
    """
    train, test = domain.splits.train, domain.splits.test
    y_hat = np.empty(test.y.shape)
    for arc in range(test.y.shape[1]):
        model = RandomForestRegressor(
            _N_TREES, max_features=2, min_samples_leaf=5, max_samples=0.7, random_state=arc
        )
        model.fit(np.pad(train.x, ((0, 0), (1, 0))), train.y[:, arc])
        y_hat[:, arc] = model.predict(np.pad(test.x, ((0, 0), (1, 0))))
    return Outcome(y_hat)


@dataclass(frozen=True)
class Learner:
    """`DecisionFocusedRegressor` with its defaults, on training and validation rows."""

    model: str  # name of a model of the learner's benchmark

    def __call__(self, domain: Domain) -> Outcome:
        data, oracle = domain.splits.train_and_validation, Oracle(domain.problem, progress=False)
        model = DecisionFocusedRegressor(oracle, MODELS[self.model](data)).fit(data.x, data.y)
        y_hat = np.asarray(model.predict(domain.splits.test.x))
        return Outcome(y_hat, model.result_.selected_name, model.result_.n_calls)


METHODS: Mapping[str, Method] = {
    LEAST_SQUARES: least_squares,
    f"{LEAST_SQUARES}, all rows": least_squares_on_all,
    "forest": forest,
    SPO_PLUS: spo_plus,
    SPO_PLUS_ALL: spo_plus_on_all,
    OURS: Learner("linear"),
    f"{OURS}, forest": Learner("forest"),
    f"{OURS}, LightGBM": Learner("lightgbm"),
}
"""The methods by name."""

OF_PORTFOLIOS = (LEAST_SQUARES, f"{LEAST_SQUARES}, all rows", SPO_PLUS, OURS)
"""The methods that portfolios have; others know all decisions, or take hours."""


def _best(domain: Domain, predictors: Sequence[Callable[[Array], Any]]) -> Outcome:
    """Return the predictions of the strength with the best validation decisions."""
    validation = domain.splits.validation
    costs = [mean_cost(domain, predictor(validation.x), validation.y) for predictor in predictors]
    best = int(np.argmin(costs))
    note = f"penalty {_STRENGTHS[best]:.0e}" if len(predictors) > 1 else ""
    return Outcome(np.asarray(predictors[best](domain.splits.test.x)), note)


def mean_cost(domain: Domain, y_hat: Array, y: Array) -> float:
    """Return the mean true cost of the decisions for predictions, all solved in one batch.

    A gain is a negative cost.
    """
    problem = domain.problem
    assert isinstance(problem, LinearProblem)
    values = (np.asarray(problem.solve_many(y_hat, None)) * y).sum(axis=1)
    return sign_of(problem) * float(values.mean())
