import sys

import pytest

from lodl.cli import main


@pytest.fixture
def run_lodl(monkeypatch, capsys):
    """Runs `lodl ...` and returns its exit code, what it said, and its errors."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["lodl", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return run
