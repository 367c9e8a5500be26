import pytest

from lodl.errors import DataError
from lodl_benchmarks.pages import read_json_rows, read_rows

ROW = b'{"domain": "mine", "method": "trees", "test": [0.5]}'


@pytest.fixture
def write(tmp_path):
    """Writes bytes to a file of rows and returns its path."""

    def write(content):
        path = tmp_path / "rows.jsonl"
        path.write_bytes(content)
        return path

    return write


def test_rows_come_with_the_numbers_of_their_lines(write):
    row = {"domain": "mine", "method": "trees", "test": [0.5]}
    path = write(ROW + b"\n\n \n" + ROW + b"\n")
    assert list(read_json_rows(path)) == [(1, row), (4, row)]


@pytest.mark.parametrize("separator", ["\u2028", "\x85"])
def test_only_a_line_break_ends_a_row(write, separator):
    path = write(f'{{"method": "a{separator}b"}}\n'.encode())
    assert list(read_json_rows(path)) == [(1, {"method": f"a{separator}b"})]


def test_a_last_line_that_was_torn_is_left_out(write):
    assert len(list(read_json_rows(write(ROW + b"\n" + ROW[:-9])))) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{]\n" + ROW, r"rows\.jsonl, line 1 is not JSON: .*\. Remove it"),
        (ROW + b"\n[1, 2]\n", r"rows\.jsonl, line 2 is not a row: '\[1, 2\]'\. Remove it"),
        (b"[" * 100_000 + b"\n", r"line 1 is not JSON"),
        (b"\xff\xfe\n", r"rows\.jsonl cannot be read: .*utf-8"),
    ],
    ids=["not JSON", "no object", "nested", "not UTF-8"],
)
def test_what_cannot_be_read_is_an_error_that_names_the_line(write, content, message):
    with pytest.raises(DataError, match=message):
        read_rows(write(content))


def test_a_file_that_is_not_there_is_told_what_rows_are(tmp_path):
    with pytest.raises(DataError, match=r"There is no .*rows\.jsonl.* at least `domain`, `method`"):
        list(read_json_rows(tmp_path / "rows.jsonl"))
    with pytest.raises(DataError, match="cannot be read"):
        list(read_json_rows(tmp_path))
