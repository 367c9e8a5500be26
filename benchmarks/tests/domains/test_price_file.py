import gzip

import numpy as np
import pytest

from lodl.errors import DataError
from lodl_benchmarks.domains import portfolio, read_prices, synthetic_prices

HEADER = "Date,Symbol,Close,Volume\n"
ROWS = [
    "2004-01-02,A,10.5,100\n",
    "2004-01-02,B,20.0,100\n",
    "2004-01-05,A,11.0,100\n",
    "2004-01-05,B,19.5,100\n",
]


@pytest.fixture
def write(tmp_path):
    def write(rows, header=HEADER, name="prices.csv"):
        path = tmp_path / name
        path.write_text(header + "".join(rows), encoding="utf-8")
        return path

    return write


def test_prices_are_read_into_days_by_symbols(write):
    prices = read_prices(write(ROWS))
    assert prices.symbols == ("A", "B")
    assert prices.dates.astype(str).tolist() == ["2004-01-02", "2004-01-05"]
    assert prices.close.tolist() == [[10.5, 20.0], [11.0, 19.5]]


def test_a_compressed_file_is_read_alike(write, tmp_path):
    plain = write(ROWS)
    packed = tmp_path / "prices.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    np.testing.assert_array_equal(read_prices(packed).close, read_prices(plain).close)


def test_a_byte_order_mark_is_no_part_of_the_first_column(write):
    assert read_prices(write(ROWS, "\ufeff" + HEADER)).symbols == ("A", "B")


@pytest.mark.parametrize("order", [[3, 1, 2, 0], [1, 3, 0, 2], [2, 3, 0, 1]])
def test_rows_may_come_in_any_order(write, order):
    shuffled = read_prices(write([ROWS[row] for row in order]))
    assert shuffled.symbols == ("A", "B")
    assert shuffled.close.tolist() == [[10.5, 20.0], [11.0, 19.5]]


def test_columns_may_come_in_any_order_and_others_are_ignored(write):
    rows = ["x,10.5,2004-01-02,A\n", "y,11,2004-01-05,A\n"]
    assert read_prices(write(rows, "Note,Close,Date,Symbol\n")).close.tolist() == [[10.5], [11.0]]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("2004-01-06,A,abc,1\n", "row 6, .*could not convert"),
        ("2004-01-06,A,,1\n", "row 6, .*could not convert"),
        ("2004-01-06,A\n", "row 6, .*index out of range"),
        ("2004-13-06,A,1.0,1\n", "row 6, .*month"),
        ("6 January,A,1.0,1\n", "row 6, .*[Ii]nvalid isoformat"),
        ("20040106,A,1.0,1\n", "row 6, .*must be written as 2004-01-02"),
        ("2004-W02-2,A,1.0,1\n", "row 6, .*must be written as 2004-01-02"),
        ("2004-1-6,A,1.0,1\n", "row 6, .*[Ii]nvalid isoformat"),
        ("2004-01-06,A,1_0,1\n", "row 6, .*could not convert"),
        ("2004-01-06,,1.0,1\n", "row 6, .*the symbol is empty"),
        ("2004-01-06,A,0,1\n", "row 6, .*must have a positive price"),
        ("2004-01-06,A,-3,1\n", "row 6, .*must have a positive price"),
        ("2004-01-06,A,nan,1\n", "row 6, .*must have a positive price"),
        ("2004-01-06,A,inf,1\n", "row 6, .*must have a positive price"),
        ("2004-01-05,B,19.5,1\n", "symbol B has 2 prices on 2004-01-05"),
        ("2004-01-06,B,19.5,1\n", "Symbol A has no positive price on 2004-01-06, and so on 1 of 3"),
        ("2004-01-05,C,19.5,1\n", "Symbol C has no positive price on 2004-01-02"),
    ],
)
def test_a_bad_row_is_refused_by_name(write, row, message):
    with pytest.raises(DataError, match=rf"prices\.csv: {message}"):
        read_prices(write([*ROWS, row]))


@pytest.mark.parametrize("header", ["", "Date,Symbol,Price\n", "2004-01-02,A,10.5,100\n"])
def test_missing_columns_are_refused(write, header):
    with pytest.raises(DataError, match="the columns must include Date, Symbol, Close"):
        read_prices(write([], header))


def test_a_file_of_a_header_only_is_refused(write):
    with pytest.raises(DataError, match="there are no prices"):
        read_prices(write([]))


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(DataError, match=r"absent\.csv cannot be read as CSV"):
        read_prices(tmp_path / "absent.csv")


@pytest.mark.parametrize("damage", ["not gzip", "torn"])
def test_a_damaged_compressed_file_is_refused(write, tmp_path, damage):
    packed = tmp_path / "prices.csv.gz"
    content = gzip.compress(write(ROWS * 100).read_bytes())
    packed.write_bytes(content[:-20] if damage == "torn" else b"no gzip at all")
    with pytest.raises(DataError, match=r"prices\.csv\.gz cannot be read as CSV"):
        read_prices(packed)


def test_prices_survive_a_round_trip_through_a_file(write):
    prices = synthetic_prices(n_days=20, n_stocks=4)
    rows = [
        f"2004-01-{day + 1:02d},{symbol},{float(close)!r},1\n"
        for day, closes in enumerate(prices)
        for symbol, close in zip("ABCD", closes, strict=True)
    ]
    np.testing.assert_array_equal(read_prices(write(rows)).close, prices)


def test_the_real_file_makes_a_data_set(data_file):
    prices = read_prices(data_file("sp500_prices_2004_2016.csv.gz"))
    assert prices.close.shape == (3273, 379)
    splits = portfolio(prices=prices.close).splits
    assert splits.test.x.shape == (400, 50, 28)
    assert splits.train.y.std() == pytest.approx(0.017, abs=0.005)
    assert np.isfinite(splits.test.x).all()
