from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from lodl._json import write_json
from lodl.errors import DataError
from lodl_benchmarks.pages import read_json


@dataclass(frozen=True)
class Inner:
    name: str | int | None
    values: tuple[float, ...] = ()


@dataclass(frozen=True)
class Outer:
    n: int
    inner: Mapping[str, Inner]


def test_a_record_comes_back_from_its_file(tmp_path):
    record = Outer(3, {"a": Inner("x", (1, 0.5)), "b": Inner(None), "c": Inner(7)})
    path = write_json(tmp_path / "new" / "record.json", record)
    assert read_json(path, Outer) == record
    assert read_json(tmp_path / "absent.json", Outer) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read"),
        ("[1]", r"must be an object, got \[1\]"),
        ('{"n": 1}', "missing .* 'inner'"),
        ('{"n": true, "inner": {}}', "`n` has an unsuitable value, True"),
        ('{"n": 1, "inner": []}', r"`inner` has an unsuitable value, \[\]"),
        ('{"n": 1, "inner": {"a": {"name": "x", "values": [0, "y"]}}}', r"`inner.a.values\[1\]`"),
        ('{"n": 1, "inner": {"a": {"name": 0.5}}}', "`inner.a.name` has an unsuitable value, 0.5"),
    ],
)
def test_a_file_that_does_not_hold_the_record_is_named_with_the_place(tmp_path, content, message):
    (tmp_path / "record.json").write_text(content)
    with pytest.raises(DataError, match=rf"record\.json .*{message}.*remove it"):
        read_json(tmp_path / "record.json", Outer)


def test_data_that_cannot_be_written_leave_no_draft(tmp_path):
    (tmp_path / "taken.json").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_json(tmp_path / "taken.json", {"settings": 1})
    assert [path.name for path in tmp_path.iterdir()] == ["taken.json"]
