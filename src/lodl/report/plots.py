"""The figures of a fit as Matplotlib axes, for notebooks.

Each function takes a fitted `lodl.DecisionFocusedRegressor` or its `result_`, and draws into `ax`
or into new axes.

Example:
    >>> from lodl.report import plots
    >>> plots.gain(model)
    >>> plots.coordinates(model, ax=axes[1])
"""

from collections.abc import Callable
from typing import Any

from lodl.report import FitResult, _draw
from lodl.report._style import style

from matplotlib import pyplot as plt  # isort: skip - after the check that it is installed
from matplotlib.axes import Axes  # isort: skip

__all__ = ["changes", "coordinates", "fidelity", "gain", "trials"]


def gain(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the validation regret of squared error and of the selected model."""
    return _drawn(_draw.draw_gain, model, ax)


def trials(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the validation regret of every trial against the solver calls so far."""
    return _drawn(_draw.draw_trials, model, ax)


def changes(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the regret that each validation instance avoided or added, sorted."""
    return _drawn(_draw.draw_changes, model, ax)


def coordinates(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the learned loss of an error in each number of the label.

    Raises:
        InvalidInputError: The selected model was trained on squared error.
    """
    return _drawn(_draw.draw_coordinates, model, ax)


def fidelity(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the learned loss against the true regret at the selected model's predictions."""
    return _drawn(_draw.draw_fidelity, model, ax)


def _drawn(draw: Callable[[Axes, FitResult], None], model: Any, ax: Axes | None) -> Axes:
    result = model if isinstance(model, FitResult) else model.result_
    with style():
        axes: Axes = plt.subplots(layout="constrained")[1] if ax is None else ax
        draw(axes, result)
    return axes
