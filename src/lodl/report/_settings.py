"""What was chosen, for those who want to do it again."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from lodl.report._rows import Row, Settings

_NAMES = {"n_samples": "samples", "n_initialisations": "initialisations", "n_steps": "steps"}


def settings_info(rows: Sequence[Row]) -> dict[str, Settings]:
    """Returns, for each domain, names and values in words.

    A value that is not the same for all is followed by the methods that had it.
    """
    domains: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        domains[row.domain].append(row)
    return {domain: tuple(_settings(members)) for domain, members in domains.items()}


def versions_info(rows: Iterable[Row]) -> Settings:
    """Returns the packages with all versions that the rows name."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for row in rows:
        for package, version in row.versions:
            found[package][version] = None
    return tuple((package, ", ".join(versions)) for package, versions in found.items())


def _settings(rows: Sequence[Row]) -> Iterable[tuple[str, str]]:
    seeds = sorted({row.seed for row in rows if row.seed is not None})
    if seeds:
        yield "seeds", _numbers_in_words(seeds)
    users: dict[str, dict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        for name, value in row.settings:
            users[name][value][row.method] = None
    defaults = users.pop("settings", {})  # differ from method to method by nature
    for name, methods in users.items():
        yield _NAMES.get(name, name.replace("_", " ")), _values_in_words(methods)
    parameters = [text for text in defaults if not text.endswith("()")]
    if parameters:
        yield "parameters", "; ".join(parameters)
    data = sorted({row.data for row in rows if row.data})
    if data:
        yield "data", ", ".join(data)


def _values_in_words(methods: dict[str, dict[str, None]]) -> str:
    if len(methods) == 1:
        return next(iter(methods))
    return "; ".join(f"{value} ({', '.join(names)})" for value, names in methods.items())


def _numbers_in_words(numbers: Sequence[int]) -> str:
    first, last = numbers[0], numbers[-1]
    is_range = last - first == len(numbers) - 1 > 1
    return f"{first} to {last}" if is_range else ", ".join(str(number) for number in numbers)
