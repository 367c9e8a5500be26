"""Comparison of two or more fits by their validation decisions, as a table and in sentences."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lodl.errors import InvalidInputError
from lodl.report._result import (
    FEWEST_INSTANCES,
    USE_MORE,
    Estimate,
    FitResult,
    amounts,
    too_few,
)
from lodl.report.page import Cell, Table


@dataclass(frozen=True)
class Comparison:
    """Results by name, compared with the first.

    Differences are paired by instance if both fits were validated on the same instances.

    Raises:
        InvalidInputError: There are fewer than two results, or they are of different problems or
            units.
    """

    results: Mapping[str, FitResult]

    def __post_init__(self) -> None:
        if len(self.results) < 2:
            raise InvalidInputError("A comparison needs at least two results of different names.")
        _check_same("problem", self._problems())
        _check_same("unit", {name: fit.unit or "none" for name, fit in self.results.items()})

    def gains(self) -> dict[str, Estimate]:
        """Return the mean regret that each other result avoids, compared with the first."""
        (_, first), *others = self.results.items()
        return {name: _gain(first, fit) for name, fit in others}

    def table(self) -> Table:
        """Return regret, gain and cost of every fit."""
        gains, first = self.gains(), next(iter(self.results))
        means = [(fit.mean_baseline, fit.mean_selected) for fit in self.results.values()]
        texts = amounts(*(mean for pair in means for mean in pair))
        rows = tuple(
            (
                Cell(name),
                Cell(texts[2 * i], fit.mean_baseline),
                Cell(texts[2 * i + 1], fit.mean_selected),
                _gain_cell(gains.get(name)),
                Cell.of_number(fit.n_calls, "{:,}"),
                Cell.of_number(fit.seconds, "{:.1f}"),
            )
            for i, (name, fit) in enumerate(self.results.items())
        )
        columns = ("fit", "squared error", "regret", f"gain over {first}", "calls", "seconds")
        return Table("Fits side by side", columns, rows)

    def sentences(self) -> list[str]:
        """Return a conclusion for each result but the first."""
        first, reference = next(iter(self.results.items()))
        sentences = []
        for name, gain in self.gains().items():
            sentences.append(_conclusion(gain, first, name, reference.in_unit))
            if self.results[name].data != reference.data:
                sentences.append(
                    f"{name} and {first} were validated on different instances, so the difference "
                    "is not paired and its interval is wider."
                )
        return sentences

    def __str__(self) -> str:
        return "\n".join([self.table().text(), "", *self.sentences()])

    def _problems(self) -> dict[str, str]:
        """Return the problem of each result, with the parameters in which they differ."""
        every = [fit.problem_parameters for fit in self.results.values()]
        names = sorted({name for parameters in every for name in parameters} - {"class"})
        differing = [
            name for name in names if len({parameters.get(name) for parameters in every}) > 1
        ]
        texts = {}
        for key, fit in self.results.items():
            values = [f"{name}={fit.problem_parameters.get(name, 'another')}" for name in differing]
            texts[key] = f"{fit.problem} ({', '.join(values)})" if values else fit.problem
        return texts


def _gain(first: FitResult, other: FitResult) -> Estimate:
    before, after = np.asarray(first.regret_selected), np.asarray(other.regret_selected)
    if first.data == other.data:
        return Estimate.of(before - after)
    estimates = Estimate.of(before), Estimate.of(after)
    error = math.hypot(*(estimate.standard_error for estimate in estimates))
    n = min(len(before), len(after))
    return Estimate(estimates[0].mean - estimates[1].mean, error, n)


def _conclusion(gain: Estimate, first: str, other: str, in_unit: str) -> str:
    """Return which of two fits decides better and by how much, or that it may be chance."""
    if gain.n_instances < FEWEST_INSTANCES:
        return f"{too_few(gain.n_instances)} to tell {first} from {other}. {USE_MORE}"
    if gain.low <= 0 <= gain.high:
        return f"No clear difference between {first} and {other}: what there is may be chance."
    better, worse = (other, first) if gain.mean > 0 else (first, other)
    ends = sorted((abs(gain.low), abs(gain.high)))
    mean, low, high = amounts(abs(gain.mean), *ends)
    return (
        f"{better} decides better than {worse}, by {mean}{in_unit} per instance (95% interval: "
        f"{low} to {high})."
    )


def _gain_cell(gain: Estimate | None) -> Cell:
    if gain is None:
        return Cell("")
    mean, low, high = amounts(gain.mean, gain.low, gain.high)
    is_short = gain.n_instances < FEWEST_INSTANCES
    return Cell(mean if is_short else f"{mean} ({low} to {high})", gain.mean)


def _check_same(what: str, texts: Mapping[str, str]) -> None:
    """Raise if results differ in their problem or unit."""
    if len(set(texts.values())) > 1:
        listed = ", ".join(f"{text} for {name}" for name, text in texts.items())
        raise InvalidInputError(
            f"Fits that are compared must be of one {what}, got {listed}. Compare fits of the same "
            f"{what} with each other."
        )
