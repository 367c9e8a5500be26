"""The line of a table that a row belongs to."""

from collections.abc import Iterator, Sequence

from lodl_benchmarks.pages import Row


def with_lines(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield each row with the name of its line.

    That is its method; where a method has rows of several numbers of samples, those of the smallest
    number have its plain name, and the others say how many they have.
    """
    fewest: dict[str, int] = {}
    for row in rows:
        fewest[row.method] = min(fewest.get(row.method, _n_samples(row)), _n_samples(row))
    for row in rows:
        n = _n_samples(row)
        yield row.method if n == fewest[row.method] else f"{row.method}, {n:,} samples", row


def _n_samples(row: Row) -> int:
    return int(row.setting("n_samples") or 0)
