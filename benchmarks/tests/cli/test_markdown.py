import pytest

from lodl_benchmarks.cli._markdown import print_markdown

_COLUMNS = ("task", *(f"a longer title {i}" for i in range(9)), "kept")
_ROWS = [
    (
        f"a task with a long name, number {i}",
        *(f"0.12{i}{j}" for j in range(9)),
        "so many words " * 9,
    )
    for i in range(3)
]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_tables_fit_the_terminal_and_cut_no_number(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = ["| " + " | ".join(row) + " |" for row in (_COLUMNS, ["---"] * 11, *_ROWS)]
    print_markdown("## What came out of it\n\n" + "\n".join(lines) + "\n\nA note. " * 2)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    assert all(cell in out.split() for row in _ROWS for cell in row[1:-1])
    assert "…" not in out
    assert out.splitlines()[0] == "What came out of it"


def test_an_empty_cell_is_empty(capsys):
    print_markdown("| a | b | c |\n|---|---|---|\n| x |  | 3 |")
    assert capsys.readouterr().out == "a  b  c\n───────\nx     3\n\n"
