"""What came out of a run: one result per method, domain and setting."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, pstdev

from lodl.paper import DOMAINS, MeanStd, published_quality
from lodl.report._rows import Row, Settings

REFERENCES = ("Random", "Optimal")
"""Methods that are 0 and 1 by definition, up to the draw."""

_PAPER_SAMPLER = "AllPerturbed"  # of its table 1
_SHARED = ("sampler", "n_samples", "n_initialisations", "data")  # of all that is compared
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
        return str(MeanStd(self.mean, self.std))


@dataclass(frozen=True)
class Result:
    """One method in one domain, over all seeds and initialisations of one setting.

    Attributes:
        domain: As the rows have it.
        method: What the models were trained on.
        settings: All that was chosen.
        setting: In words, how it differs from other results of the method in the domain.
        quality: Normalised test decision quality of the models.
        paper: The published figure.
        oracle_calls: Per seed.
        seconds: By part, per seed.
        gaussian_error: Of the learned loss around the labels, over seeds.
        empirical_error: Of the learned loss where the models predict.
    """

    domain: str
    method: str
    settings: Settings
    setting: str
    quality: RunValues
    paper: MeanStd | None
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
        reproduced: The domains of the paper, as far as all their rows are of its experiments.
    """

    compared: Mapping[str, tuple[Result, ...]]
    others: tuple[Result, ...]
    reproduced: Set[str]

    def title_of(self, domain: str) -> str:
        """Returns a domain's name for people."""
        return DOMAINS[domain] if domain in self.reproduced else domain


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Returns the rows of the paper's domains in the paper's order, then those of others."""
    places = {domain: place for place, domain in enumerate(DOMAINS)}
    return sorted(rows, key=lambda row: places.get(row.domain, len(places)))


def results_info(rows: Sequence[Row]) -> Results:
    """Returns the results of rows of any number of domains, methods, seeds and settings.

    Ablations share a file with the main comparison. What is compared is the sampler, number of
    samples, number of initialisations and data that most methods of the domain have; of a method's
    results that still differ, that of the most models, then of the best validation. The paper's
    figure stands beside a reproduction that was sampled as in its table 1.
    """
    domains: dict[str, list[Row]] = defaultdict(list)
    for row in _with_data(rows):
        domains[row.domain].append(row)
    compared: dict[str, tuple[Result, ...]] = {}
    others: list[Result] = []
    reproduced = {
        domain for domain, members in domains.items() if all(row.is_reproduction for row in members)
    }
    for domain, members in domains.items():
        chosen = []
        shared = _most_shared(members)
        most_samples = max(_n_samples(row.settings) for row in members)
        for variants in _by_method(members).values():
            main, *rest = sorted(variants, key=partial(_precedence, variants, shared), reverse=True)
            names = _varying(variants)
            is_as_paper = (
                domain in reproduced
                and _is_all_perturbed(main)
                and _n_samples(main) == most_samples
            )
            chosen.append(_result(variants[main], is_as_paper=is_as_paper))
            others += [_result(variants[one], setting=_in_words(one, names)) for one in rest]
        compared[domain] = _best_first(chosen)
    return Results(compared, _best_first(others), reproduced)


def _best_first(results: Iterable[Result]) -> tuple[Result, ...]:
    return tuple(sorted(results, key=lambda result: -result.quality.mean))


def _with_data(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows; where those of one seed are of several data, the data become a setting.

    A digest says nothing of other seeds: first data belong to first data, second to second.
    """
    found: dict[tuple[str, int | None], dict[str, int]] = defaultdict(dict)
    for row in rows:
        if row.seed is not None:
            places = found[row.domain, row.seed]
            places.setdefault(row.data, len(places) + 1)
    several = {domain for (domain, _), places in found.items() if len(places) > 1}
    return [
        replace(row, settings=(*row.settings, ("data", str(found[row.domain, row.seed][row.data]))))
        if row.domain in several and row.seed is not None
        else row
        for row in rows
    ]


def _by_method(rows: Iterable[Row]) -> dict[str, dict[Settings, list[Row]]]:
    methods: dict[str, dict[Settings, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        methods[row.method][row.settings].append(row)
    return methods


def _shared_of(settings: Settings) -> Settings:
    return tuple(pair for pair in settings if pair[0] in _SHARED)


def _most_shared(rows: Sequence[Row]) -> Settings:
    """Returns the shared settings of the most methods, then of the most models.

    Those that are equal in both are of an ablation: the paper's main settings count.
    """
    groups: dict[Settings, list[Row]] = defaultdict(list)
    for row in rows:
        groups[_shared_of(row.settings)].append(row)
    return max(groups, key=lambda settings: _size(groups[settings], settings))


def _size(rows: Sequence[Row], settings: Settings) -> tuple[int, int, bool, int]:
    n_methods = len({row.method for row in rows})
    return n_methods, _n_models(rows), _is_all_perturbed(settings), _n_samples(settings)


def _is_all_perturbed(settings: Settings) -> bool:
    """Tells whether the sampler is that of the paper's table 1."""
    return dict(settings).get("sampler", "").startswith(_PAPER_SAMPLER)


def _n_samples(settings: Settings) -> int:
    """Returns the number of samples, 0 where it is not told."""
    value = dict(settings).get("n_samples", "")
    return int(value) if value.isdecimal() else 0


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


def _result(rows: Sequence[Row], *, setting: str = "", is_as_paper: bool = False) -> Result:
    first = rows[0]
    published = published_quality(first.method, first.domain)
    calls = [row.oracle_calls for row in rows if row.oracle_calls is not None]
    return Result(
        domain=first.domain,
        method=first.method,
        settings=first.settings,
        setting=setting,
        quality=RunValues(tuple(value for row in rows for value in row.test)),
        paper=MeanStd(*published) if is_as_paper and published else None,
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
