"""Table 3 for people."""

from collections.abc import Iterator, Mapping
from typing import Any

from lodl.benchmarks._methods import METHODS
from lodl.benchmarks._quality_table import beside, markdown_table
from lodl.benchmarks._table3 import ERRORS
from lodl.paper import MeanStd

_FACTORS = {"empirical": 100, "gaussian": 100, "quality": 1}
_ERRORS_HEADER = ("error at predictions, x 10⁻²", "error around labels, x 10⁻²", "quality")
_TRENDS_HEADER = (
    "straight line through",
    "error at predictions: correlation",
    "quality at no error, 95 % interval",
    "error around labels: correlation",
)
_POINTS = {
    "of_methods": "means of losses",
    "of_runs": "all runs",
    "of_paper": "the paper's means",
}


def table3_markdown(info: Mapping[str, Any]) -> str:
    """Returns errors and quality of every method, a table for each domain, then the trends."""
    domains = info["domains"].values()
    trends = [row for domain in domains for row in _trend_rows(domain)]
    return "\n\n".join([*map(_errors_markdown, domains), markdown_table(_TRENDS_HEADER, trends)])


def _errors_markdown(domain: Mapping[str, Any]) -> str:
    methods = domain["methods"]
    rows = [
        [name, *(_beside(methods[name], column) for column in _FACTORS)]
        for name in METHODS
        if name in methods
    ]
    return markdown_table([domain["title"], *_ERRORS_HEADER], rows)


def _beside(method: Mapping[str, Any], column: str) -> str:
    paper = method["paper"]
    return beside(_scaled(method, column), None if paper is None else _scaled(paper, column))


def _scaled(figures: Mapping[str, Any], column: str) -> MeanStd:
    factor, figure = _FACTORS[column], figures[column]
    return MeanStd(factor * figure["mean"], factor * figure["std"])


def _trend_rows(domain: Mapping[str, Any]) -> Iterator[list[str]]:
    trends = domain["trends"]
    for name, points in _POINTS.items():
        line = trends["empirical"][name]
        if line is not None:
            at_predictions, around_labels = (_correlation(trends[error], name) for error in ERRORS)
            title = f"{domain['title']}, {points}"
            yield [title, at_predictions, _intercept(line), around_labels]


def _correlation(trends: Mapping[str, Any], name: str) -> str:
    trend, without = trends[name], trends["without_one"]
    if trend is None:
        return ""
    text = f"{trend['correlation']:z.2f}"
    if name != "of_methods" or without is None:
        return text
    return f"{text} ({without['correlation']:z.2f} without {without['method']})"


def _intercept(trend: Mapping[str, Any]) -> str:
    text = f"{trend['intercept']:z.2f}"
    if trend["intercept_95"] is None:
        return text
    low, high = trend["intercept_95"]
    return f"{text} [{low:z.2f}, {high:z.2f}]"
