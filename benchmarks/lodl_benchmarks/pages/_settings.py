"""The settings of a run as text, for readers who want to repeat it."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set

from lodl_benchmarks.pages._rows import Row, Settings

_NAMES = {"n_samples": "samples", "n_initialisations": "initialisations", "n_steps": "steps"}
_WRAPPED = re.compile(r"\w+\(\w+=(\w+\([^()]*\))\)")  # Learned(family=Quadratic(rank=4))


def settings_in_words(rows: Sequence[Row]) -> dict[str, Settings]:
    """Return, for each domain, the names and values of its settings.

    A value that most methods share stands alone; others are followed by the methods they belong to.
    """
    domains: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        domains[row.domain].append(row)
    return {domain: tuple(_settings(members)) for domain, members in domains.items()}


def versions_of(rows: Iterable[Row]) -> Settings:
    """Return the packages with all versions in the rows."""
    by_package: dict[str, dict[str, None]] = defaultdict(dict)
    for row in rows:
        for package, version in row.versions:
            by_package[package][version] = None
    return tuple((package, ", ".join(versions)) for package, versions in by_package.items())


def _settings(rows: Sequence[Row]) -> Iterable[tuple[str, str]]:
    seeds = sorted({row.seed for row in rows if row.seed is not None})
    if seeds:
        yield "seeds", _numbers_in_words(seeds)
    users: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in rows:
        for name, value in row.settings:
            users[name][value].add(row.method)
    defaults = users.pop("settings", {})  # differ from method to method by nature
    learned = {row.method for row in rows if row.empirical_error}
    for name, methods in users.items():
        yield _NAMES.get(name, name.replace("_", " ")), _values_in_words(methods, learned)
    parameters = [_WRAPPED.sub(r"\1", text) for text in defaults if not text.endswith("()")]
    if parameters:
        yield "parameters", "; ".join(parameters)
    data = sorted({row.data for row in rows if row.data})
    if data:
        yield "data", ", ".join(data)


def _values_in_words(methods: Mapping[str, Set[str]], learned: Set[str]) -> str:
    """Return the values, grouped by the methods that share them, most methods first."""
    values: dict[frozenset[str], list[str]] = defaultdict(list)
    for value, names in methods.items():
        values[frozenset(names)].append(value)
    n_methods = len(frozenset[str]().union(*values))
    usual, *others = sorted(values, key=len, reverse=True)
    if 2 * len(usual) > n_methods:
        words = [", ".join(values[usual])]
    else:
        words, others = [], [usual, *others]
    for names in others:
        who = "learned losses" if names == learned else ", ".join(sorted(names))
        words.append(f"{', '.join(values[names])} ({who})")
    return "; ".join(words)


def _numbers_in_words(numbers: Sequence[int]) -> str:
    first, last = numbers[0], numbers[-1]
    is_range = last - first == len(numbers) - 1 > 1
    return f"{first} to {last}" if is_range else ", ".join(str(number) for number in numbers)
