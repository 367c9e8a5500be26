"""Control characters in names reach neither the terminal nor the page."""

import sys

import numpy as np
import pandas as pd
import pytest

import lodl
from lodl import DecisionFocusedRegressor
from lodl._arrays import printable
from lodl.cli import main

COLOUR, NEWLINE, TURNED = "red\x1b[31m", "two\nlines", "left\u202eright"
SIGNS = ("\x1b", "\u202e")
ROWS = [f"day\x1b[2K {i}" for i in range(30)]
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(30, 3)), columns=[COLOUR, "b", "c"], index=ROWS)
Y = np.exp(X.to_numpy() @ RNG.normal(size=(3, 4)))
LABELS = pd.DataFrame(Y, columns=[COLOUR, NEWLINE, TURNED, "plain"], index=ROWS)
PROBLEM = """
import lodl, numpy as np
PICK = lodl.problem(lambda y: np.eye(4)[np.argmax(y)], lambda z, y: z @ y, sense="max")
"""
PICK = lodl.problem(lambda y: np.eye(4)[np.argmax(y)], lambda z, y: z @ y, sense="max")


@pytest.fixture(scope="module")
def model():
    families = [lodl.DecisionHinges(squared_error=0.1)]
    model = DecisionFocusedRegressor(PICK, families=families, n_rounds=0, n_samples=5)
    return model.fit(X, LABELS)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Zürich, 5 °C 東京", "Zürich, 5 °C 東京"),
        ("1\u00a0000", "1\u00a0000"),
        (COLOUR, r"red\x1b[31m"),
        (NEWLINE, r"two\nlines"),
        (TURNED, r"left\u202eright"),
    ],
)
def test_control_characters_are_written_out(text, shown):
    assert printable(text) == shown


def test_the_summary_shows_names_escaped(model):
    summary = model.summary()
    assert not any(sign in summary for sign in SIGNS)
    assert r"Predicts red\x1b[31m, two\nlines, left\u202eright, plain." in summary


@pytest.mark.slow
def test_the_page_shows_names_escaped(model, tmp_path):
    page = model.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert not any(sign in page for sign in SIGNS)
    assert r"day\x1b[2K" in page


def test_tables_and_errors_of_the_shell_show_names_escaped(model, tmp_path, monkeypatch, capsys):
    for name in ("one", "two"):
        model.save(tmp_path / name)
    (tmp_path / "a_problem.py").write_text(PROBLEM)
    x = X.rename(columns={"b": "b\x1b[31m"}).reset_index(drop=True)
    x.to_csv(tmp_path / "x.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    decide = "decide one --problem a_problem.py:PICK --features x.csv --out z.json"
    for command, code in [("compare one two", 0), (decide, 2)]:
        monkeypatch.setattr(sys, "argv", ["lodl", *command.split()])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert ended.value.code == code, said.err
        assert not any(sign in said.out + said.err for sign in SIGNS)
    sys.modules.pop("a_problem", None)
    assert "missing are 'b'" in said.err
