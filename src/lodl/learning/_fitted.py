"""What the parts around the regressor need to know of it."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from lodl._typing import Array
from lodl.learning._folds import Average
from lodl.learning._gain import Gain
from lodl.learning._held_out import HeldOut
from lodl.learning._search import HistoryRow
from lodl.losses import Family, LearnedLoss
from lodl.oracle import Oracle
from lodl.problems import Problem
from lodl.report import FitResult
from lodl.training import Predictor


class Asker(Protocol):
    """The parameters of a plan; see `lodl.DecisionFocusedRegressor`."""

    families: Sequence[Family] | None
    judge: Literal["solver", "pool"]
    random_state: int
    verbose: bool


class Fitted(Protocol):
    """A fitted model; see the attributes of `lodl.DecisionFocusedRegressor`."""

    estimator: Any
    judge: Literal["solver", "pool"]
    chosen_: str
    kept_: float
    judged_by_: str
    gain_: Gain
    held_out_: HeldOut
    history_: list[HistoryRow]
    loss_: LearnedLoss
    n_oracle_calls_: int
    seconds_: float
    mean_: Array
    label_names_: tuple[str, ...] | None
    label_shape_: tuple[int, ...]
    n_features_in_: int
    has_context_: bool
    predictors_: list[Predictor]
    two_stage_: Average
    _keeps_frames: bool
    _record: FitResult | None

    @property
    def problem(self) -> Problem:
        """The problem."""
        ...

    @property
    def _calls(self) -> Oracle:
        """The oracle that calls the solver."""
        ...

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        ...
