"""The figures of a fit as Matplotlib axes, for notebooks.

Each function takes a fitted `lodl.DecisionFocusedRegressor`, or the `lodl.report.FitRecord` of one,
and draws into the axes it is given, or into new ones.

Example:
    >>> from lodl.report import plots
    >>> plots.gain(model)
    >>> plots.coordinates(model, ax=axes[1])
"""

from collections.abc import Callable
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from lodl.report import FitRecord, _draw_fit, style

__all__ = ["changes", "coordinates", "fidelity", "gain", "history"]


def gain(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the held-out regret of squared error and of the kept model, with 95% intervals."""
    return _drawn(_draw_fit.draw_gain, model, ax)


def history(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the held-out regret of every model that was tried against the solver calls it took."""
    return _drawn(_draw_fit.draw_history, model, ax)


def changes(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw what each held-out instance gained or lost, sorted."""
    return _drawn(_draw_fit.draw_changes, model, ax)


def coordinates(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw what an error in each coordinate of the label costs by the learned loss.

    Raises:
        InvalidInputError: The kept model is 2-stage, for which all coordinates are alike.
    """
    return _drawn(_draw_fit.draw_coordinates, model, ax)


def fidelity(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the learned loss against the true regret at the kept model's held-out predictions."""
    return _drawn(_draw_fit.draw_fidelity, model, ax)


def _drawn(draw: Callable[[Axes, FitRecord], None], model: Any, ax: Axes | None) -> Axes:
    record = model if isinstance(model, FitRecord) else model.record()
    with style():
        axes: Axes = plt.subplots(layout="constrained")[1] if ax is None else ax
        draw(axes, record)
    return axes
