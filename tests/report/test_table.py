from lodl.report import Cell, MeanStd, Table

TABLE = Table(
    "What <it> shows",
    ("name", "value"),
    ((Cell("a & b", colour="#123456"), Cell.of_number(0.256)), (Cell("c"), Cell.of_number(None))),
)


def test_one_record_gives_markdown_and_html():
    assert TABLE.markdown().splitlines() == [
        "| name | value |",
        "| --- | --- |",
        "| a & b | 0.26 |",
        "| c |  |",
    ]
    html = TABLE.html()
    assert "<caption>What &lt;it&gt; shows</caption>" in html
    assert '<i class="mark" style="background: #123456"></i>a &amp; b</th>' in html
    assert '<td class="number" data-value="0.256">0.26</td>' in html
    assert '<th scope="col" class="number"><button type="button">value</button></th>' in html


def test_a_table_without_titles_is_a_list_of_settings():
    html = Table("Settings", (), ((Cell("seed"), Cell("3")),)).html()
    assert '<table class="settings">' in html
    assert "<thead>" not in html


def test_a_published_number_stands_in_brackets_with_a_star_where_it_differs():
    ours = MeanStd(0.5, 0.1)
    assert Cell.of_mean(ours) == Cell("0.50 ± 0.10", 0.5)
    assert Cell.of_mean(ours, MeanStd(0.6, 0.1)).text == "0.50 ± 0.10 (0.60 ± 0.10)"
    assert Cell.of_mean(ours, MeanStd(0.9, 0.1)).text == "0.50 ± 0.10 (0.90 ± 0.10) *"
    assert Cell.of_mean(None) == Cell("")
