import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lodl.errors import DataError
from lodl_benchmarks.domains import msweb_graph, read_click_matrices

READERS = {
    "matrices": (read_click_matrices, {"rates": np.full((2, 3, 4), 0.1)}),
    "graph": (
        lambda path: msweb_graph(path, n_sites=2),
        {"vroot": np.arange(5, dtype=np.uint8), "user": np.arange(5, dtype=np.uint8)},
    ),
}


@pytest.fixture(scope="module", params=READERS)
def archive(request, tmp_path_factory):
    """A reader and a sound file for it."""
    read, arrays = READERS[request.param]
    path = tmp_path_factory.mktemp("archive") / "arrays.npz"
    np.savez_compressed(path, **arrays)
    return read, path


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_torn_file_is_refused(archive, data):
    read, path = archive
    content = path.read_bytes()
    torn = path.with_name("torn.npz")
    torn.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(DataError, match=r"torn\.npz must be"):
        read(torn)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_flipped_bit_is_refused_or_harmless(archive, data):
    read, path = archive
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    flipped = path.with_name("flipped.npz")
    flipped.write_bytes(content)
    with contextlib.suppress(DataError):  # any other error fails the test
        read(flipped)
