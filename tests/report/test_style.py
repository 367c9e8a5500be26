import re
from xml.etree import ElementTree

import matplotlib as mpl
import pytest

from lodl.report.style import inline_svg, new_figure, style


@style()
def drawn(text="a curve"):
    figure = new_figure()
    axes = figure.subplots()
    axes.plot([0, 1], [1, 2], "o-", label=text)
    axes.set_xlabel(text)
    axes.legend()
    return figure


def test_a_name_with_dollars_and_markup_is_shown_as_it_is():
    svg = inline_svg(drawn(r"$\frac{1}{$ <script>&"), "f", label='say "<b>"')
    texts = [node.text for node in parsed(svg).iter() if node.tag.endswith("text")]
    assert r"$\frac{1}{$ <script>&" in texts
    assert "<script>" not in svg
    assert 'aria-label="say &quot;&lt;b&gt;&quot;"' in svg


def parsed(svg):
    return ElementTree.fromstring(svg.replace("<svg", '<svg xmlns:xlink="x"', 1))


def test_ids_of_two_figures_on_a_page_differ_and_their_references_hold():
    one, other = (inline_svg(drawn(), name, label="x") for name in ("one", "other"))
    ids = [set(re.findall(r'\bid="(.*?)"', svg)) for svg in (one, other)]
    assert ids[0].isdisjoint(ids[1])
    references = set(re.findall(r'href="#(.*?)"|url\(#(.*?)\)', one))
    assert references
    assert {a or b for a, b in references} <= ids[0]


def test_a_figure_on_the_page_takes_the_colours_and_font_of_the_page():
    svg = inline_svg(drawn(), "f", label="x")
    assert "fill: currentColor" in svg
    assert "stroke: var(--line)" in svg
    assert "font-family" not in svg
    fixed = {colour.lower() for colour in re.findall(r"#[0-9a-fA-F]{6}\b", svg)}
    assert fixed == {"#1f77b4"}  # matplotlib's first: the curve has no colour of its own


def test_the_style_leaves_no_trace():
    before = dict(mpl.rcParams)
    drawn()
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("setting", ["font.size", "lines.linewidth"])
def test_the_users_own_settings_do_not_reach_our_figures(setting):
    expected = inline_svg(drawn(), "f", label="x")
    with mpl.rc_context({setting: 40}):
        assert inline_svg(drawn(), "f", label="x") == expected
