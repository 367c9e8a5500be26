"""FitResult, the record of one `fit`: plain data, its gain, its verdict, its summary, its JSON."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import fill
from typing import Any, Self

import numpy as np

from lodl._arrays import printable, shortened
from lodl._html import notebook_html
from lodl._json import from_json, to_text
from lodl._typing import Array
from lodl.errors import DataError
from lodl.report.page import Cell, Table

BASELINE = "squared error"  #: Name of the baseline's trial.
BY_THE_SOLVER = ", by the solver"  #: Ends the name of a trial, where known decisions score others.
PLAIN = "plain model"  #: Name of the plain model's trial.
MEAN_LABEL = "mean label"  #: Name of the mean training label as a prediction.
FEWEST = 5  # instances: an interval from fewer differences says nothing

_Z_95 = 1.96  # standard errors on each side of a mean in its 95% interval
_ROUNDING = 1e-6  # share of the mean regret by which an interior-point solver may be off
_FORMAT = 1  # version of the JSON
WIDTH = 80  # columns of a summary, and characters of a decision
_MAX_WORDS = 200  # characters of a decision that its problem describes
_MAX_LISTED = 8  # label names, or zeros and ones of a decision, that are listed in full
_AS_GIVEN = ("problem_parameters", "label_names", "feature_names")  # compared with new data


def amounts(*values: float) -> list[str]:
    """Return numbers as text with the same decimals, three digits for the largest: `["86.2"]`."""
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    n_before_point = math.floor(math.log10(max(sizes))) + 1 if sizes else 3
    if not -6 < n_before_point < 13:
        return [f"{value:.3g}" for value in values]
    return [f"{value:z,.{max(3 - n_before_point, 0)}f}" for value in values]


def number_cells(values: Iterable[float]) -> Iterator[Cell]:
    """Return cells of numbers that have the same decimals."""
    numbers = list(values)
    return map(Cell, amounts(*numbers), numbers)


def change_of(before: float, after: float, form: str) -> str:
    """Return the relative change of a regret, such as -25%, in a form; nothing if undefined."""
    share = after / before - 1 if before > 0 and after >= 0 else 0.0
    return form.format(f"{share:+.0%}") if share else ""


def in_unit(unit: str, before: str = " ") -> str:
    """Return a unit after a space or other characters, or nothing."""
    return f"{before}{unit}" if unit else ""


def too_few(n: int, aim: str, kind: str = "validation") -> str:
    """Return that `n` instances of a kind are too few for an aim, and how many to use."""
    are = "instance is" if n == 1 else "instances are"
    return f"{n} {kind} {are} too few {aim}. Use at least {FEWEST}, better 50."


def inexactness_of(*regrets: Sequence[float]) -> tuple[int, float]:
    """Return how many decisions of the worse model beat the solver's own, and the mean gap."""
    negative = np.minimum(regrets, 0.0)
    sizes = -negative.mean(axis=1)
    worse = int(sizes.argmax())
    if sizes[worse] <= _ROUNDING * np.abs(regrets[worse]).mean():
        return 0, 0.0
    return int((negative[worse] < 0).sum()), float(sizes[worse])


@dataclass(frozen=True)
class Estimate:
    """A mean over instances with its standard error, which is infinite for a single instance."""

    mean: float
    standard_error: float
    n_instances: int

    @classmethod
    def of(cls, values: Array | Sequence[float]) -> "Estimate":
        """Return the mean of one value per instance."""
        values, n = np.asarray(values, dtype=float), len(values)
        error = float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else np.inf
        return cls(float(values.mean()), error, n)

    @property
    def low(self) -> float:
        """The lower end of the 95% interval."""
        return self.mean - _Z_95 * self.standard_error

    @property
    def high(self) -> float:
        """The upper end of the 95% interval."""
        return self.mean + _Z_95 * self.standard_error

    def __str__(self) -> str:
        mean, low, high = amounts(self.mean, self.low, self.high)
        return mean if self.n_instances < FEWEST else f"{mean} ({low} to {high})"


@dataclass(frozen=True)
class Trial:
    """A model that was scored."""

    name: str  #: The loss it was trained on, or the models it averages.
    round: int  #: Rounds of points at predictions that its loss had learned from.
    regret: float  #: Mean validation regret.
    n_calls: int  #: Solver calls of the fit so far.
    seconds: float  #: Seconds of the fit so far.

    @property
    def is_baseline(self) -> bool:
        """Whether the model was trained on squared error alone."""
        return self.name.partition(",")[0] in (BASELINE, PLAIN)


@dataclass(frozen=True)
class ChangedDecision:
    """Two decisions for one validation instance, as text, with their regrets."""

    instance: str
    decision_baseline: str
    decision_selected: str
    regret_baseline: float
    regret_selected: float

    @classmethod
    def of(
        cls,
        instance: str,
        decisions: Sequence[Any],
        regrets: Sequence[float],
        label_names: Sequence[str] | None,
        words: Sequence[str | None] = (None, None),
    ) -> "ChangedDecision":
        """Describe two decisions, the baseline's first, unless the problem gave `words` for them.

        If numbers have names, differences only.
        """
        before, after = decisions
        if not label_names and np.ndim(before) > 1:  # such as a route for each van
            label_names = [*map(str, np.ndindex(np.shape(before)))]
        texts = _differences(before, after, label_names or ()) or [*map(_decision_text, decisions)]
        if None not in words:
            texts = [shortened(" ".join(str(text).split()), _MAX_WORDS) for text in words]
        return cls(instance, texts[0], texts[1], *map(float, regrets))


def _differences(before: Any, after: Any, names: Sequence[str]) -> list[str]:
    """Return the numbers in which two arrays differ, by name; nothing if they have no names."""
    if not all(_is_numeric(z) and z.size == len(names) for z in (before, after)):
        return []
    both = np.ravel(before), np.ravel(after)
    differing = np.flatnonzero(~np.isclose(*both, rtol=1e-3, atol=1e-6)).tolist()
    if np.isin(both, (0, 1)).all():
        taken = [[names[i] for i in differing if z[i]] for z in both]
        return [f"takes {_joined(parts or ['none of these'])}" for parts in taken]
    return [_joined([f"{names[i]} {_number(z[i])}" for i in differing]) for z in both]


def _joined(parts: list[str]) -> str:
    """Return as many parts as fit, and the number of those left out."""
    n = len(parts)
    while n > 1 and len(", ".join(parts[:n])) > WIDTH:
        n -= 1
    more = f" and {len(parts) - n} more" if n < len(parts) else ""
    return ", ".join(parts[:n]) + more


def _decision_text(z: Any) -> str:
    if isinstance(z, Mapping):
        text = ", ".join(f"{name}: {_decision_text(part)}" for name, part in z.items())
    elif not _is_numeric(z):
        text = " ".join(str(z).split())
    elif z.ndim == 1 and z.size > _MAX_LISTED and np.isin(z, (0, 1)).all():
        text = "takes " + ", ".join(map(str, np.flatnonzero(z)))
    else:
        rows = z.reshape(-1, z.shape[-1]) if z.ndim else z.reshape(1, 1)
        text = " / ".join(" ".join(map(_number, row)) for row in rows)
    return shortened(text, WIDTH)


def _is_numeric(z: Any) -> bool:
    return isinstance(z, np.ndarray) and z.dtype.kind in "biuf"


def _number(value: Any) -> str:
    return f"{float(value):z.3g}" if abs(value) < 999.5 else f"{float(value):,.0f}"


@dataclass(frozen=True)
class Failures:
    """Numbers of failed validation decisions, and of instances on which all models failed."""

    baseline: int = 0
    selected: int = 0
    left_out: int = 0


def _shown(value: Any) -> Any:
    """Return plain data whose texts can be shown as they are: control characters are escaped."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, tuple):
        return tuple(map(_shown, value))
    if isinstance(value, Mapping):
        return {printable(name): _shown(content) for name, content in value.items()}
    if isinstance(value, Trial | ChangedDecision):
        return type(value)(*map(_shown, vars(value).values()))
    return value


@dataclass(frozen=True, kw_only=True, repr=False)
class FitResult:
    """The result of one `fit`: trials, selection, gain and cost.

    The validation regrets are those by which the model was selected, so they are a little too good.
    A failed decision counts as the baseline's worst one.
    """

    problem: str
    problem_parameters: Mapping[str, str]  #: Class and plain constructor parameters.
    model: str
    unit: str
    validation: str  #: Description of the validation instances.
    trials: tuple[Trial, ...]  #: Every model that was scored.
    selected: int  #: Position of the selected model in `trials`.
    shrinkage: float = 0.0  #: Share of the way from the predictions to the mean label.
    shift: tuple[float, ...] = ()  #: What is then added to them, flattened, or empty.
    baseline_shift: tuple[float, ...] = ()  #: The shift that corrects the baseline best, or empty.
    instances: tuple[str, ...]  #: Names of the validation instances.
    data: str  #: Digest of their labels. Results with the same digest can be paired.
    regret_baseline: tuple[float, ...]  #: Their regrets under the baseline.
    regret_selected: tuple[float, ...]  #: Their regrets under the selected model.
    failures: Failures = Failures()
    changes: tuple[ChangedDecision, ...] = ()  #: The largest falls of regret, then the rises.
    label_shape: tuple[int, ...]  #: Shape of a label as it was given: () for shape (n,).
    label_names: tuple[str, ...] | None = None
    n_features: int
    feature_names: tuple[str, ...] | None = None
    takes_frames: bool = False  #: Whether the models get features as a frame.
    is_by_loss: bool = False  #: Whether a loss compared the models, as calls were too few.
    has_context: bool
    mean_label: tuple[float, ...]  #: Mean training label, flattened.
    n_calls: int
    seconds: float
    settings: Mapping[str, int | float | bool | str | None]  #: Parameters of the regressor.
    versions: Mapping[str, str]
    estimator: Mapping[str, str] = field(default_factory=dict)  #: Its parameters in full.
    created: str = ""  #: Date and time of the fit.
    command: str = ""  #: The command that ran it.

    def __post_init__(self) -> None:
        """Check that the values fit each other; raise `ValueError` if not."""
        for name, value in list(vars(self).items()):
            if name not in _AS_GIVEN:
                object.__setattr__(self, name, _shown(value))
        n, n_numbers, shape = len(self.instances), len(self.mean_label), self.label_shape
        rules = {
            "`trials` must not be empty": len(self.trials) > 0,
            "`selected` must be a position in `trials`": 0 <= self.selected < len(self.trials),
            "`shrinkage` must be from 0 to 1": 0 <= self.shrinkage <= 1,
            "`n_features` must be at least 1": self.n_features > 0,
            "`instances` must not be empty": n > 0,
            "`label_shape` must be positive": min(shape, default=1) > 0,
            f"`mean_label` must have the shape {shape}": math.prod(shape) == n_numbers,
        }
        lengths = dict.fromkeys(("regret_baseline", "regret_selected"), n)
        lengths |= dict.fromkeys(("shift", "baseline_shift", "label_names"), n_numbers)
        for name, length in (lengths | {"feature_names": self.n_features}).items():
            value, default = getattr(self, name), getattr(type(self), name, "required")
            or_none = "" if default == "required" else " or none"
            message = f"`{name}` must have {length} values{or_none}"
            rules[message] = value == default or len(value) == length
        for message, is_kept in rules.items():
            if not is_kept:
                raise ValueError(message)
        try:
            self.to_json()
        except ValueError as error:
            raise ValueError("numbers must be finite") from error

    @property
    def gain(self) -> Estimate:
        """Mean regret per instance that the selected model avoids, paired by instance."""
        return Estimate.of(np.array(self.regret_baseline) - np.array(self.regret_selected))

    @property
    def selected_name(self) -> str:
        """Name of the selected model."""
        return self.trials[self.selected].name.removesuffix(BY_THE_SOLVER)

    @property
    def mean_baseline(self) -> float:
        """Mean regret of the baseline."""
        return float(np.mean(self.regret_baseline))

    @property
    def mean_selected(self) -> float:
        """Mean regret of the selected model."""
        return float(np.mean(self.regret_selected))

    @property
    def verdict(self) -> str:
        """A recommendation in a few sentences."""
        n_inexact, inexactness = inexactness_of(self.regret_baseline, self.regret_selected)
        notes = [self._advice(inexactness)]
        n, failures = len(self.instances), self.failures
        start = f"{BASELINE}, shifted"
        simple = [trial for trial in self.trials if trial.name.startswith(start)]
        if simple and self.gain.mean > 0 and not self.selected_name.startswith(start):
            best = min(simple, key=lambda trial: trial.regret)
            notes.append(f"With a simple correction ({best.name}): {amounts(best.regret)[0]}.")
        if n_inexact:
            (size,) = amounts(inexactness)
            notes.append(
                f"The solver is not exact: {n_inexact:,} of {n:,} validation decisions are better "
                f"than its own for the true label, by {size}{in_unit(self.unit)} per instance."
            )
        if failures.baseline or failures.selected:
            of_model = f", {failures.selected:,} with this model" if self.gain.mean > 0 else ""
            notes.append(
                f"{failures.baseline:,} of {n:,} validation decisions failed with squared "
                f"error{of_model}; each counts as the worst decision of squared error."
            )
        if failures.left_out:
            why = "because the solver failed on them with every model"
            notes.append(f"Instances left out {why}: {failures.left_out:,}.")
        return " ".join(notes)

    def _advice(self, inexactness: float) -> str:
        gain, means, unit = self.gain, (self.mean_baseline, self.mean_selected), in_unit(self.unit)
        before, after, low, high = amounts(*means, gain.low, gain.high)
        numbers = f"regret {before} -> {after}{unit} per instance"
        if gain.n_instances < FEWEST:
            return too_few(gain.n_instances, f"to judge: {numbers}")
        if self.shrinkage == 1:
            constant = "a constant prediction" if self.shift else "the mean label"
            advice = f"The features do not help: {constant} decides no worse than any model."
            return f"{advice} With it: {numbers}."
        if gain.mean <= 0:
            advice = "Keep squared error: no clear gain here."
            return f"{advice} Its regret is {before}{unit} per instance."
        if gain.mean <= inexactness:  # exceeds any difference from a mean regret of at most 0
            why = "a difference that the solver's inexactness explains"
            return f"No clear gain: {numbers}, {why}."
        numbers += f" ({change_of(*means, '{}, ')}95% interval of the gain {low} to {high})"
        if gain.low > 0:
            return f"Use this model: {numbers}."
        advice = "This may be chance; use more validation instances to find out."
        return f"No clear gain: {numbers}. {advice}"

    def __repr__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Return verdict, selection, cost and all trials as text of at most 80 columns."""
        rows = self.table().texts()
        lines = [*(fill(text, WIDTH) for text in self._paragraphs()), ""]
        widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[1:]]
        for name, *numbers in rows:  # the name comes last, because it may wrap
            start = "  ".join([*map(str.rjust, numbers, widths), ""])
            lines.append(fill(start + name, WIDTH, subsequent_indent=" " * (len(start) + 2)))
        return "\n".join([*lines, *self.remarks()])

    def _paragraphs(self) -> list[str]:
        selection = f"Validation: {self.validation}."
        if self.gain.mean > 0:
            selection += " Expect a little less on new instances: these selected the model."
        paragraphs = [
            f"{self.verdict} {selection}",
            f"Selected: {self.selected_name}.",
            f"Cost: {self.n_calls:,} solver calls, {self.seconds:.3g} s.",
        ]
        if self.label_names is not None:
            names = list(self.label_names)
            if len(names) > _MAX_LISTED:
                names = [f"{len(names)} numbers: {names[0]}, {names[1]}, ... {names[-1]}"]
            paragraphs.append(f"Predicts {', '.join(names)}.")
        return list(map(printable, paragraphs))

    def remarks(self) -> list[str]:
        """Return sentences on what may surprise in the table of trials."""
        best = min(self.trials, key=lambda trial: trial.regret)
        selected, remarks = self.trials[self.selected], []
        if self.is_by_loss or any(trial.name.endswith(BY_THE_SOLVER) for trial in self.trials):
            of = "Values are of a learned loss, not regrets"
            of = of if self.is_by_loss else "Regrets are of known decisions"
            remarks = [f'{of}, except in rows "{BY_THE_SOLVER[2:]}".']
        if selected.name.startswith("average") and not best.name.startswith("average"):
            remarks.append("A single loss is selected only if it is clearly better.")
        return remarks

    def table(self) -> Table:
        """Return a row for each trial."""
        regrets, rows = number_cells(trial.regret for trial in self.trials), []
        for trial, regret in zip(self.trials, regrets, strict=True):
            cost = Cell.of_number(trial.n_calls, "{:,}"), Cell.of_number(trial.seconds, "{:.1f}")
            rows.append((Cell(trial.name), regret, Cell.of_number(trial.round, "{:d}"), *cost))
        return Table("Trials", ("trained on", "regret", "round", "calls", "seconds"), tuple(rows))

    def _repr_html_(self) -> str:
        header, *rows = self.table().texts()
        return notebook_html("", [*self._paragraphs(), *self.remarks()], rows, header)

    def to_json(self) -> str:
        """Return the result as JSON text, which `from_json` reads."""
        return to_text({"lodl_result": _FORMAT, **vars(self)}) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the result of a JSON text; raise `DataError` if it is none of this version."""
        try:
            content = json.loads(text)
            version = content.get("lodl_result") if isinstance(content, dict) else None
            if version != _FORMAT:
                raise ValueError(f"its format is {version!r}, this package reads {_FORMAT}")
            result: Self = from_json(cls, content)
        except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
            raise DataError(f"This is not the result of a fit: {error}.") from error
        return result
