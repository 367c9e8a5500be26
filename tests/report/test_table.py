from lodl.report import Cell, Table
from lodl.report.page import Block, Section, render

TABLE = Table(
    "What <it> shows",
    ("name", "value"),
    ((Cell("a & b", colour="#123456"), Cell.of_number(0.256)), (Cell("c"), Cell.of_number(None))),
)


def html_of(table):
    section = Section("s", "S", "", (Block(tables=(table,)),))
    return render(title="T", scope="", sections=[section], footer="")


def test_one_record_gives_markdown_and_html():
    assert TABLE.markdown().splitlines() == [
        "| name | value |",
        "| --- | --- |",
        "| a & b | 0.26 |",
        "| c |  |",
    ]
    html = html_of(TABLE)
    assert "<caption>What &lt;it&gt; shows</caption>" in html
    assert '<i class="mark" style="background: #123456"></i>a &amp; b</th>' in html
    assert '<td class="number" data-value="0.256">0.26</td>' in html
    assert '<th scope="col" class="number"><button type="button">value</button></th>' in html
    assert '<th scope="col"><button type="button">name</button></th>' in html


def test_a_table_without_titles_is_a_list_of_settings():
    html = html_of(Table("Settings", (), ((Cell("seed"), Cell("3")),)))
    assert '<table class="settings">' in html
    assert "<thead>" not in html
