"""Decisions for millions of customers: one price on money, found block by block.

A block is a part of the customers that is read when it is needed: memory is bounded by the blocks
that are worked on at once. A pass over all blocks adds up the spending at 65,536 prices, and the
next one divides the interval in which the budget ends, as bisection would do in 16 passes. Prices
are divided by their bits, whose order is that of positive numbers. After four passes the price is
exact, and customers whose last step has exactly this value are served in their order.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lodl._typing import Array
from lodl_benchmarks.domains import Cut, Steps, steps_of
from lodl_benchmarks.domains._budget import paid_by

_Result = TypeVar("_Result")
_BITS = 16  # of a price, that one pass finds
_N_ROWS = 2**16  # customers at once: 10 MB, which is quicker than whole blocks


class Block(Protocol):
    """A part of the customers."""

    @property
    def first(self) -> int:
        """The number of its first customer."""

    def read(self) -> Array:
        """Return predicted effects, shape (n, T)."""


@dataclass(frozen=True)
class ParquetBlock:
    """A row group of a Parquet file, all of whose columns are numbers."""

    path: str
    group: int
    first: int

    def read(self) -> Array:
        with pq.ParquetFile(self.path) as file:
            table = file.read_row_group(self.group)
        return np.column_stack([np.asarray(column, dtype=np.float64) for column in table.columns])


def parquet_blocks(path: str | Path) -> list[ParquetBlock]:
    """Return the row groups of a file."""
    data = pq.read_metadata(path)
    sizes = [data.row_group(group).num_rows for group in range(data.num_row_groups)]
    firsts = np.cumsum([0, *sizes])[:-1].tolist()
    return [ParquetBlock(str(path), group, first) for group, first in enumerate(firsts)]


def write_parquet(path: str | Path, parts: Iterable[npt.NDArray[Any]], name: str) -> None:
    """Write arrays (n,) or (n, columns), a row group each; floats in single precision."""
    writer = None
    for part in parts:
        columns = part[:, np.newaxis] if part.ndim == 1 else part
        columns = columns.astype(np.float32) if columns.dtype.kind == "f" else columns
        names = [name] if part.ndim == 1 else [f"{name}_{i}" for i in range(columns.shape[1])]
        table = pa.table(dict(zip(names, columns.T, strict=True)))
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=max(1, len(part)))
    if writer:
        writer.close()


def find_cut(
    blocks: Sequence[Block],
    costs: Sequence[float],
    budget: float,
    *,
    executor: Executor | None = None,
) -> Cut:
    """Return the price at which the budget ends, and the first customer that it lacks there.

    `executor` works on several blocks at once: threads, or `client.get_executor()` of Dask.
    """
    money, paid, prefix = paid_by(budget), 0.0, 0
    for shift in range(64 - _BITS, -1, -_BITS):
        look = partial(_spending, costs=costs, prefix=prefix, shift=shift)
        by_bits = np.zeros(2**_BITS)
        for part in _each(look, blocks, executor):
            by_bits += part
        spent = paid + np.cumsum(by_bits[::-1])  # from high prices on
        end = int(np.searchsorted(spent, money, side="right"))
        if end == len(spent) and not prefix:
            return Cut(0.0, 0)  # everything that has an effect can be paid
        end = min(end, len(spent) - 1)  # sums of other rounding
        paid = float(spent[end - 1]) if end else paid
        prefix = prefix << _BITS | (len(spent) - 1 - end)
    price = float(np.uint64(prefix).view(np.float64))
    for block in blocks:
        rows, extra = _at_price(block, costs, price)
        last = paid + np.cumsum(extra)
        n_paid = int(np.searchsorted(last, money, side="right"))
        if n_paid < len(rows):
            return Cut(price, int(rows[n_paid]))
        paid = float(last[-1]) if len(last) else paid
    return Cut(price, blocks[-1].first + len(blocks[-1].read()))


def choose(
    blocks: Sequence[Block], costs: Sequence[float], cut: Cut, *, executor: Executor | None = None
) -> Iterator[npt.NDArray[np.int8]]:
    """Yield the treatment of each customer, block by block; -1 is none."""
    yield from _each(partial(_chosen, costs=costs, cut=cut), blocks, executor)


def _each(
    function: Callable[[Block], _Result], blocks: Sequence[Block], executor: Executor | None
) -> Iterator[_Result]:
    return (map if executor is None else executor.map)(function, blocks)


def _pieces(block: Block, costs: Sequence[float]) -> Iterator[tuple[int, Steps]]:
    """Yield the number of a customer, and the steps from there on."""
    effects = block.read()
    for start in range(0, len(effects), _N_ROWS):
        part = effects[start : start + _N_ROWS]
        yield block.first + start, steps_of(part, np.asarray(costs, dtype=np.float64))


def _spending(block: Block, costs: Sequence[float], prefix: int, shift: int) -> Array:
    """Return the money for the steps whose value begins with some bits, by its next bits."""
    spent = np.zeros(2**_BITS)
    for _, steps in _pieces(block, costs):
        value = steps.value[steps.value > 0]
        bits = value.view(np.uint64) >> np.uint64(shift)
        is_in = (bits >> np.uint64(_BITS)) == prefix
        following = (bits[is_in] & np.uint64(2**_BITS - 1)).astype(np.intp)
        extra = steps.extra[steps.value > 0][is_in]
        spent += np.bincount(following, weights=extra, minlength=len(spent))
    return spent


def _at_price(
    block: Block, costs: Sequence[float], price: float
) -> tuple[npt.NDArray[np.intp], Array]:
    """Return the customers that have steps of exactly this value, and their money."""
    rows, extra = [], []
    for first, steps in _pieces(block, costs):
        row, step = np.nonzero(steps.value == price)
        rows.append(first + row)
        extra.append(steps.extra[row, step])
    return np.concatenate(rows), np.concatenate(extra)


def _chosen(block: Block, costs: Sequence[float], cut: Cut) -> npt.NDArray[np.int8]:
    return np.concatenate([steps.chosen(cut, first) for first, steps in _pieces(block, costs)])
