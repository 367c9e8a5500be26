"""What the paper's figures show, as tables for those who read or hear them."""

from collections.abc import Mapping
from typing import Any

from lodl.report._blocks import Cell, Table, number
from lodl.report._draw_cost import SHORT_NAMES
from lodl.report._results import RunValues
from lodl.report._style import method_colours


def linear_tables(info: Mapping[str, Any]) -> tuple[Table, ...]:
    """Returns how many models of each method rise, and what their decisions are worth."""
    methods = info["methods"]
    colours = method_colours(method["name"] for method in methods)
    rows = tuple(_linear_row(method, colours[method["name"]]) for method in methods)
    columns = ("trained on", "lines that rise", "decision quality")
    return (Table("What models of the Linear Model learn", columns, rows),)


def _linear_row(method: Mapping[str, Any], colour: str) -> tuple[Cell, ...]:
    n_rising, quality = method["n_rising"], RunValues(tuple(method["quality"]))
    return (
        Cell(method["name"], colour=colour),
        Cell(f"{n_rising} of {len(quality.values)}", n_rising),
        Cell(str(quality), quality.mean),
    )


def cost_tables(info: Mapping[str, Any]) -> tuple[Table, ...]:
    """Returns the seconds of one model in each domain: measured, by formula, at the far ends."""
    return tuple(map(_cost_table, info["domains"]))


def _cost_table(domain: Mapping[str, Any]) -> Table:
    colours = method_colours(domain["formula"])
    rows = tuple(_cost_row(domain, name, colour) for name, colour in colours.items())
    columns = (
        domain["title"],
        *(_on_cores(part["cores"]) for part in domain["measured"]),
        "by the formula",
        f"{_on_cores(domain['by_cores']['cores'][-1])}, computed",
        f"{domain['by_models']['models'][-1]} models, computed",
    )
    return Table(f"Seconds to train a model in {domain['title']}", columns, rows)


def _cost_row(domain: Mapping[str, Any], name: str, colour: str) -> tuple[Cell, ...]:
    short = SHORT_NAMES.get(name)
    seconds = (
        *(part["seconds"][name] for part in domain["measured"]),
        domain["formula"][name],
        domain["by_cores"]["seconds"][name][-1],
        domain["by_models"]["seconds"][name][-1],
    )
    return (
        Cell(f"{name} ({short})" if short else name, colour=colour),
        *(number(value, "{:,.1f}") for value in seconds),
    )


def _on_cores(n_cores: int) -> str:
    return f"{n_cores} core{'s' * (n_cores != 1)}"
