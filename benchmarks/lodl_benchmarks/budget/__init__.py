"""One budget over millions of customers: labels of a trial, models, and decisions in blocks."""

from lodl_benchmarks.budget._stream import (
    ArrayBlock,
    ParquetBlock,
    choose,
    find_cut,
    parquet_blocks,
    read_group,
    write_effects,
    write_treatments,
)

__all__ = [
    "ArrayBlock",
    "ParquetBlock",
    "choose",
    "find_cut",
    "parquet_blocks",
    "read_group",
    "write_effects",
    "write_treatments",
]
