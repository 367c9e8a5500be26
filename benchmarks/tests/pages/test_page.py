import json
import re
from html.parser import HTMLParser

import pytest

from lodl._json import write_json
from lodl.errors import DataError
from lodl_benchmarks.pages import parse_row
from lodl_benchmarks.paper import table2a, write_report

VOID = {"meta", "link", "br"}


class Page(HTMLParser):
    """A page's section ids, ids, scripts and texts; demands that tags are closed in order."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.sections, self.scripts, self.texts = [], [], [], []
        self._open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if "id" in found:
            self.ids.append(found["id"])
        if tag == "section":
            self.sections.append(found["id"])
        assert not any(name.startswith("on") for name in found)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self._open.remove(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        (self.scripts if self._open and self._open[-1] == "script" else self.texts).append(data)


def test_a_full_folder_gives_every_section(report_path):
    page = Page(report_path)
    assert page.sections == [
        *("summary", "quality", "ablations", "others", "time", "fidelity", "slices"),
        *("paper", "settings"),
    ]
    assert len(page.ids) == len(set(page.ids))


def test_bare_rows_give_only_the_sections_that_have_data(write_rows):
    folder = write_rows({"domain": "mine", "method": "trees", "test": [0.5, 0.6]})
    page = Page(write_report(folder))
    assert page.sections == ["summary", "quality"]
    assert not any("the paper" in text for text in page.texts)


def test_domains_stand_in_the_papers_order_and_others_behind(row, write_rows):
    folder = write_rows(*(row(name, "NN", 0, [0.5]) for name in ("mine", "portfolio", "linear")))
    text = write_report(folder).read_text(encoding="utf-8")
    places = [text.index(f"<h3>{title}</h3>") for title in ("Linear Model", "Portfolio", "mine")]
    assert places == sorted(places)


def test_fidelity_is_shown_in_the_papers_unit(row, write_rows):
    page = Page(write_report(write_rows(row("web", "Quadratic", 0, [0.9]))))
    assert "fidelity" in page.sections
    assert "Web Advertising, errors in expected clicks" in page.texts
    assert "50.00 ± 0.00 (0.96 ± 0.00) *" in page.texts  # 0.05 of 10 users, in hundredths


def test_what_an_ablation_shows_is_not_shown_again(report_path):
    text = report_path.read_text(encoding="utf-8")
    others = text[text.index('<section id="others"') : text.index('<section id="time"')]
    assert "0.30 ± 0.10" in others
    assert "0.75 ± 0.05" not in others  # 50 samples: in the table of the ablation


def test_references_alone_are_a_page(row, write_rows):
    page = Page(write_report(write_rows(row("web", "Random", 0, [0.0]))))
    assert "Random" in page.texts


def test_a_page_that_cannot_be_written_leaves_no_draft(row, write_rows, tmp_path):
    folder = write_rows(row("web", "Random", 0, [0.0]))
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_report(folder, tmp_path / "taken")
    assert not list(tmp_path.rglob("*.draft"))


def test_the_page_needs_nothing_from_outside(report_path):
    text = report_path.read_text(encoding="utf-8")
    assert re.findall(r"(?:src|href)=\"(?!#|data:)", text) == []
    assert "@import" not in text
    assert "default-src 'none'" in text


def test_the_same_data_give_the_same_page(report_path, tmp_path):
    again = write_report(report_path.parent, tmp_path / "elsewhere" / "p.html")
    assert again.read_bytes() == report_path.read_bytes()
    assert not list(tmp_path.rglob("*.draft"))


EVIL = '</svg><script>alert(1)</script><img src=x onerror="alert(2)">{{ 7*7 }}'


def test_no_name_in_the_data_becomes_markup(row, write_rows):
    folder = write_rows(
        row(EVIL, EVIL, 0, [0.5], sampler=EVIL, versions={EVIL: EVIL}, data=EVIL),
        row(EVIL, EVIL, 0, [0.4], sampler="other"),
        row(EVIL, "Quadratic", 0, [0.9]),
    )
    evil_slice = {
        "instance": EVIL,
        "direction": EVIL,
        "offsets": [0, 1],
        "regret": [0, 1],
        "loss": {EVIL: [0, 1]},
    }
    (folder / "slices.json").write_text(json.dumps({"slices": [evil_slice]}))
    evil = row(EVIL, EVIL, 0, [0.5], sampler=EVIL)
    write_json(folder / "table2a.json", table2a([parse_row(evil)]))
    page = Page(write_report(folder))
    assert len(page.scripts) == 1
    assert "alert" not in page.scripts[0]
    assert EVIL in page.texts


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("slices", "[1]"),
        ("slices", "{"),
        ("slices", '{"slices": [{}]}'),
        ("figure-linear", '{"settings": [], "x": [1], "y": [1, 2], "methods": []}'),
        ("figure-cost", '{"domains": 3}'),
        ("table2a", '{"cells": 1}'),
    ],
)
def test_a_data_file_that_cannot_be_shown_is_named(row, write_rows, name, content):
    folder = write_rows(row("web", "Random", 0, [0.0]))
    (folder / f"{name}.json").write_text(content)
    with pytest.raises(DataError, match=rf"{name}\.json .*[Rr]emove it"):
        write_report(folder)


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(DataError, match="is not a folder"):
        write_report(tmp_path / "nowhere")


def test_a_page_of_a_paper_scale_run_is_small(row, write_rows):
    values = [0.5 + 0.004 * i for i in range(10)]
    folder = write_rows(
        *(
            row(domain, f"method {method}", seed, values)
            for domain in ("linear", "web", "portfolio")
            for method in range(9)
            for seed in range(10)
        )
    )
    assert write_report(folder).stat().st_size < 2_000_000
