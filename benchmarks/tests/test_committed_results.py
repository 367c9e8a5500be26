"""The committed tables are those of the committed rows, to the last byte."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from lodl_benchmarks import paper
from lodl_benchmarks.pages import parse_row, read_json, read_json_rows

RESULTS = Path(__file__).parents[2] / "results"


def rows_of(folder):
    return [values for _, values in read_json_rows(RESULTS / folder / "rows.jsonl")]


@pytest.mark.parametrize("name", ["budget", "learner", "peers", "real", "rounds"])
def test_tables_of_a_comparison_come_out_of_its_rows(name):
    tables = import_module(f"lodl_benchmarks.{name}").tables(rows_of(name))
    text = "\n\n".join(f"## {table.caption}\n\n{table.markdown()}" for table in tables)
    assert f"{text}\n" == (RESULTS / name / f"{name}.md").read_text()


def test_the_founding_tables_come_out_of_their_rows_but_for_published_figures():
    text = (RESULTS / "spo" / "spo.md").read_text()
    tables = import_module("lodl_benchmarks.spo").tables(rows_of("spo"))
    of_published = re.compile("Published|What was to be shown")
    ours = [table for table in tables if not of_published.search(table.caption)]
    assert len(ours) == 6
    assert all(f"## {table.caption}\n\n{table.markdown()}\n" in text for table in ours)


@pytest.mark.parametrize("name", ["table1", "table2a", "table2b"])
def test_tables_of_quality_come_out_of_their_data(name):
    table = read_json(RESULTS / "paper" / f"{name}.json", paper.QualityTable)
    assert table.table().markdown() in (RESULTS / "paper" / f"{name}.md").read_text()


def test_table_3_comes_out_of_its_data():
    table = read_json(RESULTS / "paper" / "table3.json", paper.Table3)
    for part in table.tables():
        assert part.markdown() in (RESULTS / "paper" / "table3.md").read_text()


def test_the_costs_come_out_of_their_data():
    data = read_json(RESULTS / "paper" / "figure-cost.json", paper.CostFigure)
    assert f"{data.markdown()}\n" == (RESULTS / "paper" / "figure-cost.md").read_text()


def test_every_row_of_the_paper_can_be_read():
    assert all(parse_row(values).test for values in rows_of("paper"))
