"""Decisions in blocks: those of one array, wherever blocks are read."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster
from hypothesis import given, settings
from hypothesis import strategies as st

from lodl_benchmarks.budget import (
    choose,
    find_cut,
    parquet_blocks,
    write_parquet,
)
from lodl_benchmarks.domains import Cut, cut_of, steps_of

COSTS = (1.0, 2.0, 4.0)


def effects_of(seed, n):
    return np.random.default_rng(seed).normal(0.5, 1.0, size=(n, 3)).astype(np.float32)


@dataclass(frozen=True, eq=False)
class ArrayBlock:
    """Customers in memory."""

    effects: Any
    first: int = 0

    def read(self):
        return self.effects


def in_blocks(effects, size):
    return [
        ArrayBlock(effects[first : first + size].astype(np.float64), first)
        for first in range(0, len(effects), size)
    ]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 200),
    size=st.integers(1, 80),
    digits=st.sampled_from([0, 1, 8]),  # few digits give many equal customers
    share=st.floats(0, 3),
)
def test_the_cut_and_the_decisions_in_blocks_are_those_in_memory(seed, n, size, digits, share):
    effects = effects_of(seed, n).round(digits).astype(np.float64)
    steps, budget = steps_of(effects, np.array(COSTS)), np.floor(share * n)
    expected, blocks = cut_of(steps, budget), in_blocks(effects, size)
    cut = find_cut(blocks, COSTS, budget)
    assert cut == expected
    chosen = np.concatenate(list(choose(blocks, COSTS, cut)))
    np.testing.assert_array_equal(chosen, steps.chosen(expected))
    assert np.array([0, *COSTS])[chosen + 1].sum() <= budget


def test_a_budget_for_everything_has_no_price():
    assert find_cut(in_blocks(effects_of(0, 50), 20), COSTS, 1e3) == Cut(0.0, 0)
    assert find_cut(in_blocks(-np.ones((50, 3)), 20), COSTS, 0.0) == Cut(0.0, 0)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "effects.parquet"
    table = pa.table(dict(zip("abc", effects_of(1, 10_000).T, strict=True)))
    pq.write_table(table, path, row_group_size=1500)
    return path


def decisions(blocks, budget, executor=None):
    cut = find_cut(blocks, COSTS, budget, executor=executor)
    return cut, np.concatenate(list(choose(blocks, COSTS, cut, executor=executor)))


def test_a_file_has_the_decisions_of_its_array_and_so_have_threads(file):
    blocks = parquet_blocks(file)
    cut, chosen = decisions([ArrayBlock(effects_of(1, 10_000).astype(np.float64))], 3000.0)
    with ThreadPoolExecutor(2) as executor:
        for found in (decisions(blocks, 3000.0), decisions(blocks, 3000.0, executor)):
            assert found[0] == cut
            np.testing.assert_array_equal(found[1], chosen)


@pytest.mark.dask
def test_a_cluster_of_two_workers_has_the_same_decisions(file):
    blocks = parquet_blocks(file)
    cut, chosen = decisions(blocks, 3000.0)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
        client.get_executor() as executor,
    ):
        found = decisions(blocks, 3000.0, executor)
    assert found[0] == cut
    np.testing.assert_array_equal(found[1], chosen)


def test_effects_and_treatments_are_written_in_the_row_groups_of_their_source(file, tmp_path):
    effects, treatments = tmp_path / "predicted.parquet", tmp_path / "treatments.parquet"
    write_parquet(effects, (2 * block.read()[:, ::-1] for block in parquet_blocks(file)), "effect")
    blocks = parquet_blocks(effects)
    assert [block.first for block in blocks] == list(range(0, 10_000, 1500))
    written = np.concatenate([block.read() for block in blocks])
    np.testing.assert_array_equal(written, 2 * effects_of(1, 10_000)[:, ::-1])
    assert pq.read_schema(effects).names == ["effect_0", "effect_1", "effect_2"]
    write_parquet(treatments, choose(blocks, COSTS, find_cut(blocks, COSTS, 3000.0)), "treatment")
    table = pq.read_table(treatments)
    assert table.column_names == ["treatment"]
    np.testing.assert_array_equal(table["treatment"].to_numpy(), decisions(blocks, 3000.0)[1])
