"""PJM generation scheduling: hourly generation for tomorrow, by predicted loads."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.tseries.holiday import USFederalHolidayCalendar

from lodl._arrays import check_labels
from lodl._typing import Array, InstanceContext
from lodl.errors import DataError, InvalidInputError
from lodl.problems import VectorisedProblem
from lodl_benchmarks.real._split import Split, dates, read_table, standardised

N_HOURS = 24
_N_TEST = 639  # days of the published test set, and of the other time origins
_N_CHOOSING = 365  # days that a choosing split tests
_LOADS = [f"load_{hour:02}" for hour in range(N_HOURS)]
_TEMPERATURES = [f"temp_{hour:02}" for hour in range(N_HOURS)]

PJM_ORIGINS = ("2012-05-16", "2013-09-06", "2014-12-29")
"""Last training days of the three time origins; the last one is the published split."""


def pjm(path: str | Path, until: str = PJM_ORIGINS[-1], *, choosing: bool = False) -> Split:
    """Generation scheduling with the loads of a PJM region (Donti, Amos and Kolter, 2017).

    A day is an instance and has 24 loads. The 149 features are those of the paper: loads,
    temperatures and their squares of the day before; temperatures, squares and cubes of the day
    itself (measured, not forecast: a flattering feature); weekend, holiday, summer time and the
    season. Features are standardised by the training days (the paper: by all days). The decision
    is `GenerationScheduling` with the prediction in place of the load; the paper's decision
    minimises the expected cost under normal loads instead. The last test day has one measured hour.

    Args:
        path: CSV with the columns `date`, `file` (the first day of a file has no day before it and
            is dropped), `load_00` to `load_23` and `temp_00` to `temp_23`. Empty hours are filled
            within the day, backward and then forward.
        until: The last training day. The 639 days after it are the test set, as published; at most
            all that the file has.
        choosing: Whether to test on the last 365 days up to `until` instead, and to train on the
            days before them. To choose for all origins, use `until=PJM_ORIGINS[0]`: no table shows
            a day before it.
    """
    x, y, days = _read(path)
    n_train = int((days <= pd.Timestamp(until)).sum())
    n_test = _N_TEST
    if choosing:
        n_train, n_test = n_train - _N_CHOOSING, _N_CHOOSING
    if not 0 < n_train < len(days):
        raise InvalidInputError(
            f"`until` must leave days to train on and to test on between {days[0].date()} and "
            f"{days[-1].date()}, got {until!r}."
        )
    test = slice(n_train, n_train + n_test)
    x_train, x_test = standardised(x[:n_train], x[test])
    problem = GenerationScheduling()
    level = problem.shortage / (problem.shortage + problem.excess)
    return Split(problem, x_train, y[:n_train], x_test, y[test], levels=np.full(N_HOURS, level))


def _read(path: str | Path) -> tuple[Array, Array, pd.DatetimeIndex]:
    """Return features, loads and days; the first day of each file is dropped."""
    ranges = dict.fromkeys(_LOADS, (0.0, np.inf)) | dict.fromkeys(_TEMPERATURES, (-100.0, 200.0))
    table = read_table(
        path, {"file": (0, 100), **ranges}, ["date"], optional=[*_LOADS, *_TEMPERATURES]
    )
    days = dates(table, "date", path)
    if not days.is_unique:
        raise DataError(f"{path}: a day must have one row, {days[days.duplicated()][0]} has more.")
    load, temperature = (
        table[names].bfill(axis=1).ffill(axis=1).to_numpy() for names in (_LOADS, _TEMPERATURES)
    )
    if not (np.isfinite(load).all() and np.isfinite(temperature).all()):
        raise DataError(f"{path}: a day must have at least one load and one temperature.")
    calendar = _calendar(days)
    today = np.flatnonzero(np.diff(table["file"].to_numpy()) == 0) + 1
    before = today - 1
    x = [load[before], temperature[before], temperature[before] ** 2]
    x += [temperature[today] ** power for power in (1, 2, 3)]
    return np.hstack([*x, calendar[today]]), load[today], days[today]


def _calendar(days: pd.DatetimeIndex) -> Array:
    holidays = USFederalHolidayCalendar().holidays(days[0], days[-1])
    winter = days.tz_localize("EST").normalize()
    is_summer_time = days.tz_localize("America/New_York") != winter
    season = 2 * np.pi * days.day_of_year / 365
    columns = (days.day_of_week >= 5, days.isin(holidays), is_summer_time)
    return np.column_stack([*columns, np.cos(season), np.sin(season)]).astype(np.float64)


@dataclass(frozen=True)
class GenerationScheduling(VectorisedProblem):
    """Generate close to the load of every hour, without steps beyond the ramp limit.

        min_z  sum_t a max(y_t - z_t, 0) + b max(z_t - y_t, 0) + (z_t - y_t)^2 / 2
        |z_t - z_{t-1}| <= ramp

    A label is a vector (T,) of loads, a decision a vector (T,) of generation. There is no context.
    The solver is exact (see `_follow`).
    """

    shortage: float = 50.0  # cost a of a missing unit
    excess: float = 0.5  # cost b of a unit too many
    ramp: float = 0.4  # largest change from one hour to the next
    sense = "min"

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        zs = check_labels(y_hats, "y_hats").copy()
        is_steep = (np.abs(np.diff(zs, axis=1)) > self.ramp).any(axis=1)
        if is_steep.any():  # other predictions are their own best decisions
            zs[is_steep] = self._follow(zs[is_steep])
        return zs

    def objective_many(self, zs: Any, y: Array, context: InstanceContext = None) -> Array:
        short = y - np.ascontiguousarray(zs, dtype=np.float64)
        kinked = np.maximum(self.shortage * short, -self.excess * short)
        costs: Array = (kinked + short**2 / 2).sum(axis=1)
        return costs

    def _follow(self, y: Array) -> Array:
        """Return the best schedules by dynamic programming over the hours, shape (k, T).

        The least cost up to hour t is a convex function of z_t, and its derivative is piecewise
        linear. To move on by an hour, the falling part of the function is shifted by -ramp, the
        rising part by +ramp, and the cost of the next hour is added. The minimum of hour T is the
        last decision; going back, each decision is the hour's minimum, clipped to the ramp.
        """
        n_hours = y.shape[1]
        best = np.empty_like(y)
        cost = _Derivative(y[:, :1], np.full((len(y), 1), -self.shortage), self.excess, 1)
        best[:, 0] = y[:, 0]
        for hour in range(1, n_hours):
            cost = cost.ramped(best[:, hour - 1 : hour], self.ramp)
            cost = cost.plus(y[:, hour : hour + 1], self.shortage, self.excess)
            best[:, hour] = cost.root()
        for hour in reversed(range(n_hours - 1)):
            after = best[:, hour + 1]
            best[:, hour] = np.clip(best[:, hour], after - self.ramp, after + self.ramp)
        return best


class _Derivative:
    """Increasing piecewise linear functions, one per row, that may jump at their knots.

    Args:
        knots: Where pieces meet, increasing, shape (k, m).
        left: Limits from the left at the knots.
        right: Limits from the right at the knots.
        slope: Slope before the first knot and after the last one.
    """

    def __init__(self, knots: Array, left: Array, right: Array | float, slope: float) -> None:
        order = np.argsort(knots, axis=1, kind="stable")
        self.right, self.knots, self.left = (
            np.take_along_axis(values, order, axis=1)
            for values in np.broadcast_arrays(right, knots, left)
        )
        self.slope = slope

    def ramped(self, root: Array, ramp: float) -> "_Derivative":
        """Move the negative part by -ramp and the positive part by +ramp; between them it is 0."""
        is_left, zero = self.knots < root, np.zeros_like(root)
        left, right = self.limits(root)
        return _Derivative(
            np.hstack(
                [np.where(is_left, self.knots - ramp, self.knots + ramp), root - ramp, root + ramp]
            ),
            np.hstack(
                [np.where(is_left, self.left, np.maximum(self.left, 0)), np.minimum(left, 0), zero]
            ),
            np.hstack(
                [
                    np.where(is_left, np.minimum(self.right, 0), self.right),
                    zero,
                    np.maximum(right, 0),
                ]
            ),
            self.slope,
        )

    def plus(self, y: Array, shortage: float, excess: float) -> "_Derivative":
        """Add the derivative of the cost of an hour with load y, shape (k, 1)."""
        left, right = self.limits(y)
        knots = np.hstack([self.knots, y])
        return _Derivative(
            knots,
            np.hstack([self.left, left]) + knots - y + np.where(knots > y, excess, -shortage),
            np.hstack([self.right, right]) + knots - y + np.where(knots >= y, excess, -shortage),
            self.slope + 1,
        )

    def limits(self, z: Array) -> tuple[Array, Array]:
        """Return the limits from the left and from the right at z, all of shape (k, 1)."""
        left = self._value((self.knots < z).sum(axis=1, keepdims=True), z)
        right = self._value((self.knots <= z).sum(axis=1, keepdims=True), z)
        return left, right

    def root(self) -> Array:
        """Return where the functions cross 0, shape (k,)."""
        piece = (self.right < 0).sum(axis=1, keepdims=True)
        knot_a, value_a, knot_b, value_b = self._ends(piece)
        rise = np.where(value_b > value_a, value_b - value_a, 1)
        inside = knot_a - value_a / rise * (knot_b - knot_a)
        before, beyond = knot_b - value_b / self.slope, knot_a - value_a / self.slope
        root = self._by_place(piece, before, inside, beyond)
        is_jump = (piece < self.knots.shape[1]) & (value_b <= 0)
        crossing: Array = np.where(is_jump, knot_b, root)[:, 0]
        return crossing

    def _value(self, piece: Any, z: Array) -> Array:
        """Return the value at z of the piece that ends at this knot."""
        knot_a, value_a, knot_b, value_b = self._ends(piece)
        width = knot_b - knot_a
        share = np.where(width > 0, (z - knot_a) / np.where(width > 0, width, 1), 1)
        inside = value_a + share * (value_b - value_a)
        before, beyond = value_b + self.slope * (z - knot_b), value_a + self.slope * (z - knot_a)
        return self._by_place(piece, before, inside, beyond)

    def _ends(self, piece: Any) -> tuple[Array, Array, Array, Array]:
        """Return both ends of the piece that ends at this knot, and its values there."""
        a, b = np.maximum(piece - 1, 0), np.minimum(piece, self.knots.shape[1] - 1)
        pairs = ((self.knots, a), (self.right, a), (self.knots, b), (self.left, b))
        knot_a, value_a, knot_b, value_b = (np.take_along_axis(v, k, axis=1) for v, k in pairs)
        return knot_a, value_a, knot_b, value_b

    def _by_place(self, piece: Any, before: Array, inside: Array, beyond: Array) -> Array:
        """Select by whether a piece is before the first knot, between two, or after the last."""
        is_last = piece == self.knots.shape[1]
        selected: Array = np.where(piece == 0, before, np.where(is_last, beyond, inside))
        return selected
