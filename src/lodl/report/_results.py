"""What came out of a run: one result per method, domain and setting."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, pstdev

from lodl.paper import DOMAINS, TABLE1
from lodl.report._rows import Row, Settings

REFERENCES = ("Random", "Optimal")
"""Methods that are 0 and 1 by definition, up to the draw."""

_SHARED = ("sampler", "n_samples", "n_initialisations")  # of all methods that are compared
_UNITS = {"n_samples": " samples", "n_initialisations": " initialisations"}
_TELLING = ("sampler", "surrogate", "settings")  # their values need no name


@dataclass(frozen=True)
class RunValues:
    """Values over runs, with their mean and standard deviation."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean."""
        return fmean(self.values)

    @property
    def std(self) -> float:
        """The standard deviation of these values, as in the paper's tables."""
        return pstdev(self.values)

    def __str__(self) -> str:
        return f"{self.mean:z.2f} ± {self.std:.2f}"


@dataclass(frozen=True)
class Result:
    """One method in one domain, over all seeds and initialisations of one setting.

    Attributes:
        domain: As the rows have it.
        method: What the models were trained on.
        setting: In words, how it differs from other results of the method in the domain.
        quality: Normalised test decision quality of the models.
        paper: The published mean and standard deviation.
        oracle_calls: Per seed.
        seconds: By part, per seed.
        gaussian_error: Of the learned loss around the labels, over seeds.
        empirical_error: Of the learned loss where the models predict.
    """

    domain: str
    method: str
    setting: str
    quality: RunValues
    paper: tuple[float, float] | None
    oracle_calls: float | None
    seconds: Mapping[str, float]
    gaussian_error: RunValues | None
    empirical_error: RunValues | None

    @property
    def is_learned(self) -> bool:
        """Whether the models were trained on a learned loss."""
        return bool(self.empirical_error or self.seconds.get("fitting"))


@dataclass(frozen=True)
class Results:
    """The results of a run.

    Attributes:
        compared: By domain, one result per method, under settings as equal as the run has them.
        others: The same methods under other settings.
    """

    compared: Mapping[str, tuple[Result, ...]]
    others: tuple[Result, ...]


def title_of(domain: str) -> str:
    """Returns a domain's name for people."""
    return DOMAINS.get(domain, domain)


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Returns the rows of the paper's domains in the paper's order, then those of others."""
    places = {domain: place for place, domain in enumerate(DOMAINS)}
    return sorted(rows, key=lambda row: places.get(row.domain, len(places)))


def results_info(rows: Sequence[Row]) -> Results:
    """Returns the results of rows of any number of domains, methods, seeds and settings.

    Ablations share a file with the main comparison. What is compared is the sampler, number of
    samples and number of initialisations that most methods of the domain have; of a method's
    results that still differ, that of the most models, then of the best validation.
    """
    domains: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        domains[row.domain].append(row)
    compared: dict[str, tuple[Result, ...]] = {}
    others: list[Result] = []
    for domain, members in domains.items():
        chosen = []
        shared = _most_shared(members)
        for variants in _by_method(members).values():
            main, *rest = sorted(variants, key=partial(_precedence, variants, shared), reverse=True)
            names = _varying(variants)
            chosen.append(_result(variants[main], ""))
            others += [_result(variants[one], _in_words(one, names)) for one in rest]
        compared[domain] = _best_first(chosen)
    return Results(compared, _best_first(others))


def _best_first(results: Iterable[Result]) -> tuple[Result, ...]:
    return tuple(sorted(results, key=lambda result: -result.quality.mean))


def _by_method(rows: Iterable[Row]) -> dict[str, dict[Settings, list[Row]]]:
    methods: dict[str, dict[Settings, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        methods[row.method][row.settings].append(row)
    return methods


def _shared_of(settings: Settings) -> Settings:
    return tuple(pair for pair in settings if pair[0] in _SHARED)


def _most_shared(rows: Sequence[Row]) -> Settings:
    """Returns the shared settings of the most methods, then of the most models."""
    groups: dict[Settings, list[Row]] = defaultdict(list)
    for row in rows:
        groups[_shared_of(row.settings)].append(row)
    return max(groups, key=lambda s: (len({row.method for row in groups[s]}), _n_models(groups[s])))


def _n_models(rows: Iterable[Row]) -> int:
    return sum(len(row.test) for row in rows)


def _precedence(
    variants: Mapping[Settings, Sequence[Row]], shared: Settings, settings: Settings
) -> tuple[bool, int, float]:
    rows = variants[settings]
    validation = [value for row in rows for value in row.validation] or [0.0]
    return _shared_of(settings) == shared, _n_models(rows), fmean(validation)


def _varying(variants: Iterable[Settings]) -> list[str]:
    """Returns the names whose values are not the same in all variants."""
    values = [dict(settings) for settings in variants]
    names = dict.fromkeys(name for settings in values for name in settings)
    return [name for name in names if len({settings.get(name) for settings in values}) > 1]


def _in_words(settings: Settings, names: Container[str]) -> str:
    words = []
    for name, value in settings:
        if name in names:
            before = "" if name in _TELLING or name in _UNITS else name.replace("_", " ") + " "
            words.append(f"{before}{value}{_UNITS.get(name, '')}")
    return ", ".join(words) or "settings not told"


def _result(rows: Sequence[Row], setting: str) -> Result:
    first = rows[0]
    calls = [row.oracle_calls for row in rows if row.oracle_calls is not None]
    return Result(
        domain=first.domain,
        method=first.method,
        setting=setting,
        quality=RunValues(tuple(value for row in rows for value in row.test)),
        # "portfolio-prices" is the paper's portfolio on other data
        paper=None if setting else TABLE1.get(first.method, {}).get(first.domain.split("-")[0]),
        oracle_calls=fmean(calls) if calls else None,
        seconds=_mean_seconds(rows),
        gaussian_error=_values_of(
            row.gaussian_error for row in rows if row.gaussian_error is not None
        ),
        empirical_error=_values_of(value for row in rows for value in row.empirical_error),
    )


def _mean_seconds(rows: Sequence[Row]) -> dict[str, float]:
    known: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for part, seconds in row.seconds:
            known[part].append(seconds)
    return {part: fmean(values) for part, values in known.items()}


def _values_of(values: Iterable[float]) -> RunValues | None:
    found = tuple(values)
    return RunValues(found) if found else None
