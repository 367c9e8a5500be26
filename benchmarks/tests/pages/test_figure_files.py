from lodl.report.style import new_figure, style
from lodl_benchmarks.pages import save_figure


@style()
def drawn(text="a curve"):
    figure = new_figure()
    axes = figure.subplots()
    axes.plot([0, 1], [1, 2], "o-")
    axes.set_xlabel(text)
    return figure


def test_the_same_figure_gives_the_same_bytes(tmp_path):
    first, second = (save_figure(drawn(), tmp_path / name) for name in ("a", "b"))
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert [path.suffix for path in first] == [".svg", ".png"]
    assert b"<dc:date>" not in first[0].read_bytes()


def test_text_in_an_svg_stays_text(tmp_path):
    svg, _ = save_figure(drawn("decision quality"), tmp_path / "a")
    assert ">decision quality</text>" in svg.read_text()
