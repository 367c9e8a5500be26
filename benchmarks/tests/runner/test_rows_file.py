import json
import subprocess
import sys

import pytest

from lodl_benchmarks.pages import read_json_rows
from lodl_benchmarks.runner import RowsFile

ROWS = [{"domain": "mine", "method": name, "test": [0.5, 0.25]} for name in ("2-stage", "DFL")]
APPEND = """
import os, sys
from lodl_benchmarks.runner import RowsFile  # before the forks, so that it is imported once

runners = []
for name in "ab":
    runners.append(os.fork())
    if not runners[-1]:
        file = RowsFile(sys.argv[1])
        for i in range(40):
            file.append({"domain": "mine", "method": name, "test": [i], "padding": "x" * 5000})
        os._exit(0)
print(*(os.waitstatus_to_exitcode(os.waitpid(runner, 0)[1]) for runner in runners))
"""


@pytest.fixture
def file(tmp_path):
    file = RowsFile(tmp_path / "new folder" / "rows.jsonl")
    for row in ROWS:
        file.append(row)
    return file


def methods(file):
    return [row["method"] for _, row in read_json_rows(file.path)]


def test_rows_come_back_in_order(file):
    assert methods(file) == methods(RowsFile(file.path)) == ["2-stage", "DFL"]


def test_a_torn_line_is_cut_off_and_the_file_goes_on(file):
    whole = file.path.read_bytes()
    file.path.write_bytes(whole[:-5])
    assert methods(RowsFile(file.path)) == ["2-stage"]
    file.append(ROWS[1])
    assert file.path.read_bytes() == whole


def test_a_whole_last_line_without_its_end_is_kept(file):
    whole = file.path.read_bytes()
    file.path.write_bytes(whole[:-1])
    file.append(ROWS[0])
    assert file.path.read_bytes() == whole + whole[: whole.index(b"\n") + 1]


def test_a_number_that_is_not_finite_is_refused(file):
    with pytest.raises(ValueError, match="not JSON compliant"):
        file.append({"test": [float("nan")]})
    assert methods(file) == ["2-stage", "DFL"]


def test_runners_that_write_at_once_and_one_that_was_killed_lose_no_row(file):
    with file.path.open("ab") as torn:
        torn.write(b'{"domain": "mine", "meth')  # killed while it wrote
    command = [sys.executable, "-c", APPEND, str(file.path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    assert done.stdout == "0 0\n"
    assert [json.loads(line) for line in file.path.read_text().splitlines()][:2] == ROWS
    for name in "ab":
        tests = [row["test"] for _, row in read_json_rows(file.path) if row["method"] == name]
        assert tests == [[i] for i in range(40)]
