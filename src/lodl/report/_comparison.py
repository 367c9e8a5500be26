"""Two or more fits side by side, judged by the same held-out instances."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from lodl._amounts import amounts
from lodl._fit_record import FitRecord
from lodl._gain import (
    FEWEST_INSTANCES,
    USE_MORE,
    Z_95,
    interval_95,
    standard_error,
    too_few,
)
from lodl._json import write_text
from lodl.errors import InvalidInputError
from lodl.report._blocks import Block, Section, svg_of
from lodl.report._draw_fit import KEPT, TWO_STAGE, draw_interval
from lodl.report._fit_page import title_of
from lodl.report._page import Headline, render
from lodl.report._style import new_figure, shortened, style
from lodl.report._table import Cell, Table

_N_SHOWN = 10  # instances that tell two runs apart


@dataclass(frozen=True)
class PairedDifference:
    """The regret of one run less that of another, paired by instance where they share them.

    Attributes:
        mean: The mean difference; positive where the second is better.
        low: The lower end of its 95% interval.
        high: The upper end.
        is_paired: Whether both were judged by the same instances.
        n_instances: Number of held-out instances, of the run that has fewer.
    """

    mean: float
    low: float
    high: float
    is_paired: bool
    n_instances: int

    @classmethod
    def of(cls, one: FitRecord, other: FitRecord) -> "PairedDifference":
        """Compare the kept models of two runs."""
        a, b = np.asarray(one.regret_kept), np.asarray(other.regret_kept)
        mean = float(a.mean() - b.mean())
        n = min(len(a), len(b))
        if one.data == other.data:
            return cls(mean, *interval_95(a - b), is_paired=True, n_instances=n)
        half = Z_95 * math.hypot(standard_error(a), standard_error(b))
        return cls(mean, mean - half, mean + half, is_paired=False, n_instances=n)

    def in_words(self, one: str, other: str, unit: str = "") -> str:
        """Return which run decides better and by how much, or that it may be chance.

        Args:
            one: Name of the first run.
            other: Name of the second.
            unit: The unit of the objective, with a space before it.
        """
        if self.n_instances < FEWEST_INSTANCES:
            return f"{too_few(self.n_instances)} to tell {one} from {other}. {USE_MORE}"
        if self.low <= 0 <= self.high:
            return f"No clear difference between {one} and {other}: what there is may be chance."
        better, worse = (other, one) if self.mean > 0 else (one, other)
        ends = sorted((abs(self.low), abs(self.high)))
        gain, low, high = amounts(abs(self.mean), *ends)
        return (
            f"{better} decides better than {worse}, by {gain}{unit} per instance (95% interval: "
            f"{low} to {high})."
        )


@dataclass(frozen=True)
class Comparison:
    """Runs by name; the first is what the others are compared with.

    Raises:
        InvalidInputError: There are fewer than two runs, or they are of different problems or
            units.
    """

    runs: Mapping[str, FitRecord]

    def __post_init__(self) -> None:
        if len(self.runs) < 2:
            raise InvalidInputError("A comparison needs at least two runs of different names.")
        _check_same("problem", _problems(self.runs))
        _check_same("unit", {name: run.unit or "none" for name, run in self.runs.items()})

    def differences(self) -> dict[str, PairedDifference]:
        """Return the first run less each other one."""
        (_, first), *others = self.runs.items()
        return {name: PairedDifference.of(first, run) for name, run in others}

    def table(self) -> Table:
        """Return regret, difference and cost of every run."""
        differences = self.differences()
        first = next(iter(self.runs))
        means = [(run.mean_two_stage, run.mean_kept) for run in self.runs.values()]
        texts = amounts(*(mean for both in means for mean in both))
        rows = tuple(
            (
                Cell(name),
                Cell(texts[2 * i], run.mean_two_stage),
                Cell(texts[2 * i + 1], run.mean_kept),
                _difference_cell(differences.get(name)),
                Cell.of_number(run.n_calls, "{:,}"),
                Cell.of_number(run.seconds, "{:.1f}"),
            )
            for i, (name, run) in enumerate(self.runs.items())
        )
        columns = ("run", "squared error", "regret", f"gain over {first}", "calls", "seconds")
        return Table("Runs side by side", columns, rows)

    def sentences(self) -> list[str]:
        """Return what each comparison amounts to."""
        first = next(iter(self.runs))
        sentences = []
        for name, difference in self.differences().items():
            unit = self.runs[first].in_unit
            sentences.append(difference.in_words(first, name, unit))
            if not difference.is_paired:
                sentences.append(
                    f"{name} and {first} were judged on different instances, so the difference is "
                    "not paired and its interval is wider."
                )
        return sentences

    def write(self, path: str | Path) -> Path:
        """Write one HTML file that shows the comparison, and return its path."""
        return write_text(Path(path), self._page())

    def _page(self) -> str:
        first = next(iter(self.runs.values()))
        with style():
            figure = new_figure(5.2, 0.45 * len(self.runs) + 0.9)
            _draw(figure.subplots(), self.runs)
        best = min(self.runs, key=lambda name: self.runs[name].mean_kept)
        texts = amounts(*(run.mean_kept for run in self.runs.values()))
        numbers = ", ".join(f"{name} {text}" for name, text in zip(self.runs, texts, strict=True))
        kept = tuple(
            (Cell(name), Cell(run.chosen), Cell(run.gain.verdict))
            for name, run in self.runs.items()
        )
        return render(
            title=" and ".join(self.runs),
            scope=f"{title_of(first.problem)}, judged by held-out decisions: {first.judged_by}",
            headline=Headline(
                kicker="Regret per instance, compared with perfect foresight",
                number=f"{numbers}{first.in_unit}",
                text=" ".join(self.sentences()),
                svg=svg_of(figure, "runs", label=f"Mean regret by run; the least is {best}"),
            ),
            sections=[
                Section(
                    "runs",
                    "Runs",
                    "Differences are paired by instance; in brackets, their 95% intervals.",
                    (
                        Block("", tables=(self.table(),)),
                        Block("What was kept", tables=(Table("What was kept", (), kept),)),
                    ),
                ),
                *self._apart(),
            ],
            footer="Regret is how much more a decision costs than the best decision in hindsight.",
        )

    def _apart(self) -> Iterator[Section]:
        """Yield, for each run that is paired with the first, the instances that tell them apart."""
        first, one = next(iter(self.runs.items()))
        for number, (name, difference) in enumerate(self.differences().items()):
            other = self.runs[name]
            gain = np.asarray(one.regret_kept) - np.asarray(other.regret_kept)
            if not difference.is_paired or not gain.any():
                continue
            better, worse = int((gain > 0).sum()), int((gain < 0).sum())
            rows = []
            for i in np.argsort(-np.abs(gain), kind="stable")[:_N_SHOWN]:
                values = (one.regret_kept[i], other.regret_kept[i], gain[i])
                texts = amounts(*values)
                cells = (Cell(text, value) for text, value in zip(texts, values, strict=True))
                rows.append((Cell(one.instances[i]), *cells))
            columns = ("instance", f"regret of {first}", f"of {name}", "difference")
            yield Section(
                f"apart-{number}",
                f"{first} and {name}, instance by instance",
                f"{name} decides better on {better:,} of {len(gain):,} instances and worse on "
                f"{worse:,}. Below are those on which the two differ most.",
                (Block("", tables=(Table("Where they differ", columns, tuple(rows)),)),),
            )


def _problems(runs: Mapping[str, FitRecord]) -> dict[str, str]:
    """Return the problem of each run, with the parameters in which the runs differ."""
    every = [run.problem_parameters for run in runs.values()]
    names = sorted({name for parameters in every for name in parameters} - {"class"})
    differing = [name for name in names if len({one.get(name) for one in every}) > 1]
    texts = {}
    for key, run in runs.items():
        values = [f"{name}={run.problem_parameters.get(name, 'another')}" for name in differing]
        texts[key] = f"{run.problem} ({', '.join(values)})" if values else run.problem
    return texts


def _check_same(what: str, texts: Mapping[str, str]) -> None:
    """Raise if runs differ in their problem or unit."""
    if len(set(texts.values())) > 1:
        found = ", ".join(f"{text} for {name}" for name, text in texts.items())
        raise InvalidInputError(
            f"Runs that are compared must be of one {what}, got {found}. Compare runs of the same "
            f"{what} with each other."
        )


def _difference_cell(difference: PairedDifference | None) -> Cell:
    if difference is None:
        return Cell("")
    mean, low, high = amounts(difference.mean, difference.low, difference.high)
    if difference.n_instances < FEWEST_INSTANCES:
        return Cell(mean, difference.mean)
    return Cell(f"{mean} ({low} to {high})", difference.mean)


def _draw(axes: Axes, runs: Mapping[str, FitRecord]) -> None:
    """Draw the regret of each run as a bar, 2-stage as a mark on it."""
    for row, run in enumerate(runs.values()):
        axes.barh(row, run.mean_kept, height=0.58, color=KEPT)
        draw_interval(axes, row, run.regret_kept)
        axes.plot(run.mean_two_stage, row, "D", color=TWO_STAGE, markersize=7)
    axes.set_yticks(range(len(runs)), [shortened(name) for name in runs])
    axes.set_ylim(len(runs) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    unit = next(iter(runs.values())).unit
    axes.set_xlabel(f"regret per instance{f', {unit}' if unit else ''}; diamond: squared error")
