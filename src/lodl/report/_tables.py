"""Tables of regrets: models on new data (`Evaluation`), and fits on theirs (`Comparison`)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from textwrap import fill

import numpy as np

from lodl._html import notebook_html
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.report._result import (
    BASELINE,
    FEWEST,
    MEAN_LABEL,
    PLAIN,
    WIDTH,
    Estimate,
    FitResult,
    amounts,
    change_of,
    in_unit,
    inexactness_of,
    number_cells,
    too_few,
)
from lodl.report.page import Cell, Table

_HEADER = ("", "regret", "% of optimum", "this model avoids (95% interval)")
_PHRASES = {PLAIN: f"the {PLAIN}", MEAN_LABEL: f"the {MEAN_LABEL}"}


@dataclass(frozen=True)
class Evaluation:
    """Regrets of several models on instances that none was trained on.

    Print it for the table and the verdict. The evaluated model is compared with the best of the
    others, so that the gain is what it adds to simpler ways to predict.
    """

    regrets: Mapping[str, tuple[float, ...]]  #: By what predicts; the evaluated model is last.
    optimum: tuple[float, ...]  #: Objective of the best decision for each instance's label.
    unit: str  #: The unit of the objective, or empty.
    n_calls: int  #: Solver calls that the evaluation took.
    n_left_out: int = 0  #: Instances left out because a solver call failed on them.
    kind: str = "test"  #: "test", or "validation" if the instances selected the model.

    @classmethod
    def of_fit(cls, result: FitResult) -> "Evaluation":
        """Return the regrets of a fit on its validation instances."""
        rows = {BASELINE: result.regret_baseline, "this model": result.regret_selected}
        optimum = (math.nan,) * len(result.instances)  # not recorded
        left_out = result.failures.left_out
        return cls(rows, optimum, result.unit, result.n_calls, left_out, "validation")

    @classmethod
    def of(
        cls, regrets: Mapping[str, Array], optimum: Array, *, unit: str = "", n_calls: int = 0
    ) -> "Evaluation":
        """Compare models by their regrets, shape (n,) each and NaN if the solver failed."""
        known = np.isfinite(np.stack([*regrets.values(), optimum])).all(axis=0)
        rows = {name: tuple(regret[known].tolist()) for name, regret in regrets.items()}
        return cls(rows, tuple(optimum[known].tolist()), unit, n_calls, int(np.sum(~known)))

    @property
    def means(self) -> dict[str, float]:
        """Mean regret per instance of each model."""
        return {name: float(np.mean(regret)) for name, regret in self.regrets.items()}

    def percent(self, name: str) -> float | None:
        """Return a model's regret in per cent of the optimum, or None if the optimum is about 0."""
        means, optimum = self.means, abs(float(np.mean(self.optimum)))
        is_defined = optimum > 1e-9 * max(map(abs, means.values()))  # and not NaN
        return 100 * means[name] / optimum if is_defined else None

    def gain(self, name: str) -> Estimate:
        """Return the mean regret that the evaluated model avoids compared with another, paired."""
        *_, ours = self.regrets.values()
        return Estimate.of(np.array(self.regrets[name]) - np.array(ours))

    @property
    def reference(self) -> str:
        """Name of the best other model, or of the plain one if it decides the same and is level."""
        *others, last = self.regrets
        best = min(others, key=self.means.__getitem__)
        is_plain = self.regrets.get(PLAIN) == self.regrets[last]
        return PLAIN if is_plain and self.gain(best).high >= 0 else best

    def compared(self, name: str) -> str:
        """Return whether the evaluated model is "better" or "worse" than another, as a word."""
        gain, *_, ours = self.gain(name), *self.regrets.values()
        if gain.n_instances < FEWEST:
            return "too few instances"
        if gain.mean == gain.standard_error == 0:
            return "the same"
        least = inexactness_of(self.regrets[name], ours)[1] if self.kind == "validation" else 0.0
        if 0 < gain.mean <= least:
            return "no clear difference"  # as the verdict of the fit
        return "better" if gain.low > 0 else "worse" if gain.high < 0 else "no clear difference"

    @property
    def headline(self) -> str:
        """The mean regret of the reference and of the evaluated model, with the change."""
        before, after = self.means[self.reference], list(self.means.values())[-1]
        change = change_of(before, after, " ({})")
        return f"{' → '.join(amounts(before, after))}{in_unit(self.unit)}{change}"

    @property
    def verdict(self) -> str:
        """A recommendation in one or two sentences."""
        if not self.optimum:
            return "No instance can be compared: a solver call failed on each of them."
        other, compared = self.reference, self.compared(self.reference)
        means, gain = (self.means[other], list(self.means.values())[-1]), self.gain(other)
        other, unit = _PHRASES.get(other, other), in_unit(self.unit)
        before, after, low, high = amounts(*means, gain.low, gain.high)
        numbers = f"regret {before} -> {after}{unit} per instance"
        if gain.n_instances < FEWEST:
            return too_few(gain.n_instances, f"to judge: {numbers}", self.kind)
        if compared == "the same":
            return f"This model decides like {other}: regret {after}{unit} per instance."
        numbers += f" ({change_of(*means, '{}, ')}95% interval of the gain {low} to {high})"
        if compared == "better":
            return f"Use this model: compared with {other}, the best simpler way, {numbers}."
        if compared == "worse":
            return f"Use {other} instead: with this model, {numbers}."
        return (
            f"No clear difference from {other}, the best simpler way: {numbers}. Use the simpler "
            f"way, or more {self.kind} instances to find out."
        )

    def __str__(self) -> str:
        if not self.optimum:
            return self.verdict
        return f"{self.table().text()}\n{self._note}\n{fill(self.verdict, WIDTH)}"

    def _repr_html_(self) -> str:
        if not self.optimum:
            return notebook_html("", [self.verdict])
        header, *rows = self.table().texts()
        return notebook_html("", [self.verdict, self._note], rows, header)

    @property
    def _note(self) -> str:
        unit, n = in_unit(self.unit, ", in "), len(self.optimum)
        calls = f", {self.n_calls:,} solver calls" if self.n_calls else ""  # none if all are known
        note = f"Regret per instance{unit}: {n:,} {self.kind} instances{calls}."
        if self.n_left_out:
            note += f" Left out, because a solver call failed: {self.n_left_out:,} instances."
        return note

    def table(self) -> Table:
        """Return a row for each model: regret, its share of the optimum, what this model avoids."""
        n, means = len(self.optimum), self.means
        smallest = min((abs(mean) for mean in means.values() if mean), default=0.0)
        decimals = len(amounts(smallest)[0].partition(".")[2])  # all rows as the smallest
        rows, last, form = [], list(means)[-1], f"{{:z,.{decimals}f}}"
        for name, mean in means.items():
            gap = str(self.gain(name)) if name != last and n >= FEWEST else ""
            share = self.percent(name)  # defined for all rows or for none
            shares = () if share is None else (Cell.of_number(share),)
            rows.append((Cell(name), Cell.of_number(mean, form), *shares, Cell(gap)))
        columns = _HEADER if shares else _HEADER[:2] + _HEADER[3:]
        return Table(self._note, columns, tuple(rows))


@dataclass(frozen=True)
class Comparison:
    """Results of fits by name, compared with the first by their validation decisions.

    Differences are paired by instance if both fits were validated on the same instances. Print it
    for the table and its conclusions. All results must be of one problem and unit.
    """

    results: Mapping[str, FitResult]

    def __post_init__(self) -> None:
        if len(self.results) < 2:
            raise InvalidInputError("A comparison needs at least two results of different names.")
        units = {name: fit.unit or "none" for name, fit in self.results.items()}
        for what, texts in (("problem", self._problems()), ("unit", units)):
            if len(set(texts.values())) > 1:
                listed = ", ".join(f"{text} for {name}" for name, text in texts.items())
                got = f"{listed}. Compare fits of the same {what} with each other"
                raise InvalidInputError(f"Fits that are compared must be of one {what}, got {got}.")

    def _problems(self) -> dict[str, str]:
        """Return the problem of each result, with the parameters in which equal names differ."""
        texts = {key: fit.problem for key, fit in self.results.items()}
        if len(set(texts.values())) > 1:
            return texts
        every = [fit.problem_parameters for fit in self.results.values()]
        names = sorted({name for fit in every for name in fit} - {"class"})
        differing = [name for name in names if len({fit.get(name) for fit in every}) > 1]
        for key, fit in self.results.items():
            values = [f"{name}={fit.problem_parameters.get(name, 'another')}" for name in differing]
            texts[key] = f"{fit.problem} ({', '.join(values)})" if values else fit.problem
        return texts

    def gains(self) -> dict[str, Estimate]:
        """Return the mean regret that each other result avoids, compared with the first."""
        (_, first), *others = self.results.items()
        gains, before = {}, np.array(first.regret_selected)
        for name, fit in others:
            after = np.array(fit.regret_selected)
            if fit.data == first.data:
                gains[name] = Estimate.of(before - after)
            else:
                a, b = Estimate.of(before), Estimate.of(after)
                error = math.hypot(a.standard_error, b.standard_error)
                gains[name] = Estimate(a.mean - b.mean, error, min(a.n_instances, b.n_instances))
        return gains

    def table(self) -> Table:
        """Return regret, gain and cost of every fit."""
        gains, first = self.gains(), next(iter(self.results))
        fits = self.results.values()
        cells = number_cells(mean for f in fits for mean in (f.mean_baseline, f.mean_selected))
        rows = []
        for name, fit in self.results.items():
            gain = Cell(str(gains[name]), gains[name].mean) if name in gains else Cell("")
            cost = Cell.of_number(fit.n_calls, "{:,}"), Cell.of_number(fit.seconds, "{:.1f}")
            rows.append((Cell(name), *islice(cells, 2), gain, *cost))
        columns = ("fit", "squared error", "regret", f"gain over {first}", "calls", "seconds")
        return Table("Fits side by side", columns, tuple(rows))

    def sentences(self) -> list[str]:
        """Return a conclusion for each result but the first."""
        first, reference = next(iter(self.results.items()))
        sentences = []
        for name, gain in self.gains().items():
            sentences.append(_conclusion(gain, first, name, in_unit(reference.unit)))
            if self.results[name].data != reference.data:
                sentences.append(
                    f"{name} and {first} were validated on different instances, so the difference "
                    "is not paired and its interval is wider."
                )
        return sentences

    def __str__(self) -> str:
        return "\n".join([self.table().text(), self._note, "", *self.sentences()])

    def _repr_html_(self) -> str:
        header, *rows = self.table().texts()
        return notebook_html("", [self._note, *self.sentences()], rows, header)

    @property
    def _note(self) -> str:
        unit = in_unit(next(iter(self.results.values())).unit, ", in ")
        return f"Validation regret per instance{unit}; gains with 95% intervals."


def _conclusion(gain: Estimate, first: str, other: str, unit: str) -> str:
    """Return which of two fits decides better and by how much, or that it may be chance."""
    if gain.n_instances < FEWEST:
        return too_few(gain.n_instances, f"to tell {first} from {other}")
    if gain.low <= 0 <= gain.high:
        return f"No clear difference between {first} and {other}: it may be chance."
    better, worse = (other, first) if gain.mean > 0 else (first, other)
    mean, low, high = amounts(abs(gain.mean), *sorted((abs(gain.low), abs(gain.high))))
    size = f"{mean}{unit} per instance (95% interval: {low} to {high})"
    return f"{better} decides better than {worse}, by {size}."
