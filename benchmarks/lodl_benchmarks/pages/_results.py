"""Results of a run: one per method, domain and setting."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean

from lodl_benchmarks.pages._mean_std import MeanStd
from lodl_benchmarks.pages._rows import Row, Settings

REFERENCES = ("Random", "Optimal")
"""Methods that are 0 and 1 by definition, up to the draw."""

_MAIN_SAMPLER = "AllPerturbed"  # the default; other samplers are ablations
_SHARED = ("sampler", "n_samples", "n_initialisations", "data")  # equal in all that is compared
_UNITS = {"n_samples": " samples", "n_initialisations": " initialisations"}
_NEED_NO_NAME = ("sampler", "surrogate", "settings")  # the values speak for themselves


@dataclass(frozen=True)
class Result:
    """One method in one domain, over all seeds and initialisations of one setting."""

    domain: str  # the name of the domain in the rows
    method: str  # what the models were trained on
    settings: Settings  # everything that was chosen for the runs
    setting: str  # difference from other results of the method in the domain, as text
    runs: tuple[float, ...]  # normalised test decision quality of every model
    published: MeanStd | None  # a published number to compare with, if there is one
    oracle_calls: float | None  # calls of the solver per seed
    seconds: Mapping[str, float]  # seconds of each part per seed
    gaussian_error: MeanStd | None  # error of the learned loss around the labels, over seeds
    empirical_error: MeanStd | None  # error of the learned loss where the models predict

    @property
    def quality(self) -> MeanStd:
        """The mean and the standard deviation of the runs."""
        return MeanStd.of(self.runs)

    @property
    def is_learned(self) -> bool:
        """Whether the models were trained on a learned loss."""
        return bool(self.empirical_error or self.seconds.get("fitting"))

    @property
    def n_samples(self) -> int:
        """Samples per instance, 0 where the rows do not give them."""
        return n_samples_of(self.settings)

    @property
    def is_main_sampler(self) -> bool:
        """Whether losses were learned from samples of the main sampler, not of an ablation."""
        return _is_main_sampler(self.settings)


@dataclass(frozen=True)
class Results:
    """The results of a run."""

    # By domain, one result per method, under settings as equal as the run has them.
    compared: Mapping[str, tuple[Result, ...]]
    others: tuple[Result, ...]  # the same methods under other settings
    # Titles of domains; a domain without one has its name.
    titles: Mapping[str, str] = field(default_factory=dict)
    publication: str = ""  # source of `Result.published`

    def title_of(self, domain: str) -> str:
        """Return a domain's title."""
        return self.titles.get(domain, domain)


def results_of(rows: Sequence[Row]) -> Results:
    """Return the results of rows of any number of domains, methods, seeds and settings.

    Ablations share a file with the main comparison. What is compared is the sampler, number of
    samples, number of initialisations and data that most methods of the domain have; of a method's
    results that still differ, the result with the most models, then the best validation quality.
    """
    domains: dict[str, list[Row]] = defaultdict(list)
    for row in _with_data(rows):
        domains[row.domain].append(row)
    compared: dict[str, tuple[Result, ...]] = {}
    others: list[Result] = []
    for domain, members in domains.items():
        chosen = []
        shared = _most_shared(members)
        for variants in _by_method(members).values():
            main, *rest = sorted(variants, key=partial(_precedence, variants, shared), reverse=True)
            names = _varying(variants)
            chosen.append(_result(variants[main]))
            others += [
                _result(variants[variant], setting=_in_words(variant, names)) for variant in rest
            ]
        compared[domain] = _best_first(chosen)
    return Results(compared, _best_first(others))


def _best_first(results: Iterable[Result]) -> tuple[Result, ...]:
    return tuple(sorted(results, key=lambda result: -result.quality.mean))


def _with_data(rows: Sequence[Row]) -> list[Row]:
    """Return the rows, with the data as a setting where one seed has rows on different data.

    Each seed has other digests, so data are numbered by their first appearance in a seed:
    those that appear first in every seed belong together, and so on.
    """
    places_of: dict[tuple[str, int | None], dict[str, int]] = defaultdict(dict)
    for row in rows:
        if row.seed is not None:
            places = places_of[row.domain, row.seed]
            places.setdefault(row.data, len(places) + 1)
    several = {domain for (domain, _), places in places_of.items() if len(places) > 1}
    return [
        replace(
            row, settings=(*row.settings, ("data", str(places_of[row.domain, row.seed][row.data])))
        )
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
    """Return the shared settings of the most methods, then of the most models.

    If both are equal, the rows are an ablation: the main sampler and the most samples win.
    """
    groups: dict[Settings, list[Row]] = defaultdict(list)
    for row in rows:
        groups[_shared_of(row.settings)].append(row)
    return max(groups, key=lambda settings: _size(groups[settings], settings))


def _size(rows: Sequence[Row], settings: Settings) -> tuple[int, int, bool, int]:
    n_methods = len({row.method for row in rows})
    return n_methods, _n_models(rows), _is_main_sampler(settings), n_samples_of(settings)


def _is_main_sampler(settings: Settings) -> bool:
    return dict(settings).get("sampler", "").startswith(_MAIN_SAMPLER)


def n_samples_of(settings: Settings) -> int:
    """Return the number of samples, or 0 if it is not given."""
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
    """Return the names whose values are not the same in all variants."""
    values = [dict(settings) for settings in variants]
    names = dict.fromkeys(name for settings in values for name in settings)
    return [name for name in names if len({settings.get(name) for settings in values}) > 1]


def _in_words(settings: Settings, names: Container[str]) -> str:
    words = []
    for name, value in settings:
        if name in names:
            before = "" if name in _NEED_NO_NAME or name in _UNITS else name.replace("_", " ") + " "
            words.append(f"{before}{value}{_UNITS.get(name, '')}")
    return ", ".join(words) or "settings not given"


def _result(rows: Sequence[Row], *, setting: str = "") -> Result:
    first = rows[0]
    calls = [row.oracle_calls for row in rows if row.oracle_calls is not None]
    return Result(
        domain=first.domain,
        method=first.method,
        settings=first.settings,
        setting=setting,
        runs=tuple(value for row in rows for value in row.test),
        published=None,
        oracle_calls=fmean(calls) if calls else None,
        seconds=_mean_seconds(rows),
        gaussian_error=_mean_std(
            [row.gaussian_error for row in rows if row.gaussian_error is not None]
        ),
        empirical_error=_mean_std([value for row in rows for value in row.empirical_error]),
    )


def _mean_seconds(rows: Sequence[Row]) -> dict[str, float]:
    known: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for part, seconds in row.seconds:
            known[part].append(seconds)
    return {part: fmean(values) for part, values in known.items()}


def _mean_std(values: Sequence[float]) -> MeanStd | None:
    return MeanStd.of(values) if values else None
