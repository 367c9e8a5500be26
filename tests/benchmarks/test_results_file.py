import pytest

from lodl.benchmarks._results import ResultsFile

ROWS = [{"method": "2-stage", "values": [0.5, 0.25]}, {"method": "DFL", "values": [1.0]}]


@pytest.fixture
def results(tmp_path):
    file = ResultsFile(tmp_path / "new folder" / "rows.jsonl")
    for row in ROWS:
        file.append(row)
    return file


def test_rows_come_back_in_order(results):
    assert results.rows() == ROWS
    assert ResultsFile(results.path).rows() == ROWS


def test_a_torn_line_is_cut_off_and_the_file_goes_on(results):
    whole = results.path.read_bytes()
    results.path.write_bytes(whole[:-5])
    again = ResultsFile(results.path)
    assert again.rows() == ROWS[:1]
    again.append(ROWS[1])
    assert results.path.read_bytes() == whole


def test_a_whole_last_line_without_its_end_is_kept(results):
    whole = results.path.read_bytes()
    results.path.write_bytes(whole[:-1])
    assert ResultsFile(results.path).rows() == ROWS
    assert results.path.read_bytes() == whole


def test_a_figure_that_is_not_a_number_is_refused(results):
    with pytest.raises(ValueError, match="not JSON compliant"):
        results.append({"values": [float("nan")]})
    assert results.rows() == ROWS
