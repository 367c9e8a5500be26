"""The figure of costs: what training one model costs, by cores and by models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lodl.report import Cell, Table
from lodl_benchmarks.pages import method_colours

LODL = "ConvexDirectedQuadratic"
"""The method that stands for learned losses."""

TRAINED = ("2-stage", "DFL", LODL)
"""The methods whose costs are measured."""

SHORT_NAMES = {LODL: "LODL"}
"""The names of methods beside curves."""

_Seconds: TypeAlias = Mapping[str, tuple[float, ...]]

_MOST_CORES = 64  # the paper's machines
_MOST_MODELS = 50

_COUNTS = {
    "N": "instances with a learned loss",
    "B": "instances in a step of training; all N in the paper",
    "K": "samples of an instance",
    "T": "steps of training",
}
_UNITS = {
    "T_M": ("model, forward and backward", "2-stage / T B"),
    "T_O": ("oracle call of sampling", "sampling / K N"),
    "T_O of DFL": ("surrogate of DFL, forward", "a pass of B"),
    "T'_O": ("surrogate of DFL, backward", "a pass of B"),
    "T_LODL": ("learned loss of a sample, forward and backward by its parameters", "a pass of K"),
    "T_fit": ("our fit of a learned loss, of a sample", "fitting / K N"),
}
_FORMULAS = {
    "2-stage": "T B T_M",
    "DFL": "T B (T_M + T_O of DFL + T'_O)",
    LODL: "K N T_O + N T K T_LODL + T B T_M",
}
_NOTE = (
    "The costs are the paper's, for one core, with B for its N in a step of training. 2-stage and "
    "the term K N T_O agree with the measurement by definition, since T_M and T_O were computed "
    "from it. T_O of DFL and T'_O were measured separately, at the predictions of a model before "
    "training. N T K T_LODL is a fit by T steps of gradient descent; ours are solved."
)


@dataclass(frozen=True)
class CostSettings:
    """Settings of the measurement."""

    n_samples: int  # points per instance, K
    n_steps: int  # steps of training, T, without early stopping
    cores: tuple[int, ...]  # numbers of cores to measure on; the first is 1
    domains: tuple[str, ...]  # names of setups
    # Versions of the packages; under others the costs are measured again.
    versions: Mapping[str, str]


@dataclass(frozen=True)
class PreparationCosts:
    """Seconds that learned losses take before training, on a number of cores, by the clock."""

    cores: int  # the number of cores
    sampling: float  # seconds of sampling
    fitting: float  # seconds of fitting
    seconds: Mapping[str, float]  # seconds of one model of each method, with those before training


@dataclass(frozen=True)
class UnitCosts:
    """Seconds of one pass, by the processor."""

    # The surrogate's decision and its worth, per instance of a batch as large as those of the
    # training (the paper's T_O of DFL).
    surrogate_forward: float
    surrogate_backward: float  # seconds of its gradient (T'_O)
    # A learned loss and its gradient by its own parameters, per sample: a step of a fit by gradient
    # descent (T_LODL).
    learned_loss: float


@dataclass(frozen=True)
class Measured:
    """The measurements in a domain."""

    # (cores, seconds of sampling, seconds of fitting); the first is of one core.
    preparation: tuple[tuple[int, float, float], ...]
    # Seconds of one model, by method and by the processor: steps follow one another, so training
    # has one core.
    training: Mapping[str, float]
    units: UnitCosts  # seconds of single passes


@dataclass(frozen=True)
class ByCores:
    """Seconds of one model on numbers of cores."""

    cores: tuple[int, ...]
    seconds: _Seconds


@dataclass(frozen=True)
class ByModels:
    """Seconds per model, where several share their learned losses."""

    models: tuple[int, ...]
    seconds: _Seconds


@dataclass(frozen=True)
class DomainCosts:
    """The costs of a domain, measured and computed; see `costs_of_domain`."""

    domain: str
    title: str
    counts: Mapping[str, int]
    units: Mapping[str, float]
    formula: Mapping[str, float]
    fit_steps: float
    training: Mapping[str, float]
    measured: tuple[PreparationCosts, ...]
    by_cores: ByCores
    by_models: ByModels
    serial: float
    break_even: float | None
    break_even_models: float | None

    def table(self) -> Table:
        """Return the seconds of one model: measured, by formula, and at the far ends."""
        colours = method_colours(self.formula)
        rows = tuple(
            (
                Cell(
                    f"{name} ({SHORT_NAMES[name]})" if name in SHORT_NAMES else name, None, colour
                ),
                *(Cell.of_number(seconds, "{:,.1f}") for seconds in self._seconds(name)),
            )
            for name, colour in colours.items()
        )
        columns = (
            self.title,
            *(_on_cores(part.cores) for part in self.measured),
            "by the formula",
            f"{_on_cores(self.by_cores.cores[-1])}, computed",
            f"{self.by_models.models[-1]} models, computed",
        )
        return Table(f"Seconds to train a model in {self.title}", columns, rows)

    def _seconds(self, name: str) -> tuple[float, ...]:
        return (
            *(part.seconds[name] for part in self.measured),
            self.formula[name],
            self.by_cores.seconds[name][-1],
            self.by_models.seconds[name][-1],
        )

    def in_words(self) -> str:
        """Return what a fit took, what does not divide, and where learned losses beat DFL."""
        return (
            f"{self.title}: a fit took as long as {self.fit_steps:.0f} such steps. "
            f"{self.serial:.1f} s of sampling and fitting are assumed not to divide among cores. "
            f"{self._break_even_in_words()}"
        )

    def _break_even_in_words(self) -> str:
        cores, models = self.break_even, self.break_even_models
        if models is None:
            return "Learned losses never cost less than DFL."
        if models <= 1:
            return "Learned losses cost less than DFL on one core, for a single model."
        by_cores = "on no number of cores" if cores is None else f"from {cores:.1f} cores"
        return (
            f"Learned losses cost less than DFL from {models:.1f} models on one core, and for a "
            f"single model {by_cores} (computed)."
        )


@dataclass(frozen=True)
class CostFigure:
    """The contents of `figure-cost.json`."""

    settings: CostSettings
    machine: Mapping[str, str | int | None]
    domains: tuple[DomainCosts, ...]

    def markdown(self) -> str:
        """Return unit costs, and the paper's formula with them beside the measurements."""
        domains = [domain.in_words() for domain in self.domains]
        tables = [self._units_table().markdown(), self._totals_table().markdown()]
        return "\n\n".join([*tables, _NOTE, *domains])

    def _units_table(self) -> Table:
        counts = [
            (name, meaning, "", *(f"{domain.counts[name]:,}" for domain in self.domains))
            for name, meaning in _COUNTS.items()
        ]
        units = [
            (
                name,
                meaning,
                source,
                *(f"{1e6 * domain.units[name]:,.1f} µs" for domain in self.domains),
            )
            for name, (meaning, source) in _UNITS.items()
        ]
        columns = ("", "", "found from", *(domain.title for domain in self.domains))
        return _table_of_texts("Unit costs", columns, [*counts, *units])

    def _totals_table(self) -> Table:
        measured = [f"measured, {_on_cores(part.cores)}" for part in self.domains[0].measured]
        totals = [
            (
                domain.title,
                name,
                formula,
                f"{domain.formula[name]:,.1f}",
                *(f"{part.seconds[name]:,.1f}" for part in domain.measured),
            )
            for domain in self.domains
            for name, formula in _FORMULAS.items()
        ]
        columns = ("domain", "trained on", "cost", "seconds by it", *measured)
        return _table_of_texts("Seconds to train a model", columns, totals)


def costs_of_domain(
    domain: str, title: str, costs: Measured, counts: Mapping[str, int]
) -> DomainCosts:
    """Return the measured seconds of one model, and what follows from them.

    With P the seconds of sampling and fitting on one core, p those that do not become fewer on
    more, and M those of training,

        seconds on c cores = p + (P - p) / c + M,   seconds of each of m models = P / m + M

    for learned losses, and M for the others, whose steps wait for one another. So learned losses
    cost less than DFL, of M', from (P - p) / (M' - M - p) cores, `break_even`, and from
    P / (M' - M) models, `break_even_models`, or None if they never do.

    Args:
        domain: The name of the domain.
        title: Its title.
        costs: The measurements.
        counts: N instances, B of them in a step of training, K samples, T steps.
    """
    once = _preparation_seconds(costs)[0]
    serial = _serial(costs)
    gain = costs.training["DFL"] - costs.training[LODL]
    cores, models = tuple(range(1, _MOST_CORES + 1)), tuple(range(1, _MOST_MODELS + 1))
    units = _unit_costs(costs, counts)
    return DomainCosts(
        domain=domain,
        title=title,
        counts=dict(counts),
        units=units,
        formula=_by_formula(units, counts),
        fit_steps=units["T_fit"] / units["T_LODL"],
        training=costs.training,
        measured=tuple(
            PreparationCosts(*part, _seconds(costs, seconds))
            for part, seconds in zip(costs.preparation, _preparation_seconds(costs), strict=True)
        ),
        by_cores=ByCores(cores, _curves(costs, [serial + (once - serial) / c for c in cores])),
        by_models=ByModels(models, _curves(costs, [once / m for m in models])),
        serial=serial,
        break_even=(once - serial) / (gain - serial) if gain > serial else None,
        break_even_models=once / gain if gain > 0 else None,
    )


def _preparation_seconds(costs: Measured) -> list[float]:
    return [sampling + fitting for _, sampling, fitting in costs.preparation]


def _serial(costs: Measured) -> float:
    """Return the seconds that more cores do not save: p of p + (P - p) / c (Amdahl's law).

    The curve goes through the measurements on one core and on the most cores. With one core alone,
    everything is assumed to divide.
    """
    seconds, cores = _preparation_seconds(costs), costs.preparation[-1][0]
    if cores == 1:
        return 0.0
    serial = (cores * seconds[-1] - seconds[0]) / (cores - 1)
    return min(max(serial, 0.0), seconds[0])


def _unit_costs(costs: Measured, counts: Mapping[str, int]) -> dict[str, float]:
    """Return the paper's T of everything, and what our fit took, in seconds of one core."""
    n_passes, n_samples = counts["T"] * counts["B"], counts["N"] * counts["K"]
    _, sampling, fitting = costs.preparation[0]
    return {
        "T_M": costs.training["2-stage"] / n_passes,
        "T_O": sampling / n_samples,
        "T_O of DFL": costs.units.surrogate_forward,
        "T'_O": costs.units.surrogate_backward,
        "T_LODL": costs.units.learned_loss,
        "T_fit": fitting / n_samples,
    }


def _by_formula(units: Mapping[str, float], counts: Mapping[str, int]) -> dict[str, float]:
    """Return the paper's cost of each method on one core, with B for its N in a training step."""
    n_passes, n_samples = counts["T"] * counts["B"], counts["N"] * counts["K"]
    training = n_passes * units["T_M"]
    return {
        "2-stage": training,
        "DFL": training + n_passes * (units["T_O of DFL"] + units["T'_O"]),
        LODL: n_samples * (units["T_O"] + counts["T"] * units["T_LODL"]) + training,
    }


def _curves(costs: Measured, before: Sequence[float]) -> dict[str, tuple[float, ...]]:
    """Return the seconds of one model, by the seconds spent before training."""
    return {
        name: tuple(_seconds(costs, setup_seconds)[name] for setup_seconds in before)
        for name in TRAINED
    }


def _seconds(costs: Measured, before: float) -> dict[str, float]:
    """Return the seconds of one model, with those before training where losses are learned."""
    return {name: costs.training[name] + (before if name == LODL else 0.0) for name in TRAINED}


def _on_cores(n_cores: int) -> str:
    return f"{n_cores} core{'s' * (n_cores != 1)}"


def _table_of_texts(
    caption: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]
) -> Table:
    return Table(caption, columns, tuple(tuple(map(Cell, row)) for row in rows))
