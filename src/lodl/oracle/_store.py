"""The Zarr store: outcomes that survive the process.

    zarr.json                 schema version, fingerprints, seed, chunk shapes, and their checksum
    optimum, optimum_status   (n_instances, 1)          DL(y, y) of each instance
    regret, status            (n_instances, n_samples)  regrets, and what became of each call
    log                       attributes only: seconds, first failures

Two processes that work on one store do no harm: a chunk has one possible content, so what they
write twice is the same, and each write is atomic on a local disk and on object stores.
"""

import shutil
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from lodl.errors import StoreError
from lodl.oracle._layout import Layout
from lodl.oracle._store_header import StoreIdentity, check_header, make_header
from lodl.oracle._table import RunLog, Table
from lodl.oracle._zarr_panel import ZarrPanel

if TYPE_CHECKING:  # imported where it is used: it takes half a second
    import zarr


class ZarrTable(Table):
    """A table in a store."""

    note = "What was done is kept in the store."

    def __init__(self, optimum: ZarrPanel, regret: ZarrPanel, log: "zarr.Group") -> None:
        super().__init__(optimum, regret, _read_log(log))
        self._zarr_log = log

    def save_log(self) -> None:
        self._zarr_log.attrs.put(asdict(self.log))


def open_store(store: str, identity: StoreIdentity, n_samples: int | None) -> ZarrTable | None:
    """Returns the table of a store with room for the samples, None if there is no store.

    Args:
        store: A directory or an fsspec URL.
        identity: What the outcomes must belong to.
        n_samples: Grows to these many samples; None opens it for reading only.
    """
    import zarr

    if not _exists(store):
        return None
    mode: Literal["r", "r+"] = "r" if n_samples is None else "r+"
    try:
        root = zarr.open_group(_zarr_store(store), mode=mode, zarr_format=3)
        layout = check_header(store, root.attrs.asdict(), identity)
        optimum = _open_panel(root, "optimum", "optimum_status", layout.optimum)
        regret = _open_panel(root, "regret", "status", layout.regret)
        log = root["log"]
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise StoreError(
            f"{store} is damaged, its metadata cannot be read: {error}. Restore or remove it."
        ) from error
    if n_samples is not None and n_samples > regret.shape[1]:
        regret.grow(n_samples)
    return ZarrTable(optimum, regret, cast("zarr.Group", log))


def create_store(store: str, identity: StoreIdentity, layout: Layout, n_samples: int) -> None:
    """Makes an empty store.

    A local one appears all at once: of processes that start together, one makes it and the others
    find it. Behind a URL nothing is so certain: let one process make the store first.
    """
    filesystem, path = _filesystem(store)
    if not _is_local(filesystem):
        _write_empty(store, identity, layout, n_samples)
        return
    place = Path(path)
    draft = place.with_name(f"{place.name}.{uuid.uuid4().hex}.draft")
    try:
        _write_empty(str(draft), identity, layout, n_samples)
        draft.replace(place)
    except OSError:
        if not _exists(store):
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write_empty(store: str, identity: StoreIdentity, layout: Layout, n_samples: int) -> None:
    import zarr
    from zarr.codecs import Crc32cCodec, ZstdCodec

    root = zarr.create_group(_zarr_store(store), zarr_format=3)
    for values, status, chunk_shape, n_columns in (
        ("optimum", "optimum_status", layout.optimum, 1),
        ("regret", "status", layout.regret, n_samples),
    ):
        for name, dtype, fill in ((values, np.float64, np.nan), (status, np.uint8, 0)):
            root.create_array(
                name,
                shape=(identity.n_instances, n_columns),
                chunks=chunk_shape,
                dtype=dtype,
                fill_value=fill,
                compressors=[ZstdCodec(level=1), Crc32cCodec()],
            )
    root.create_group("log")
    root.attrs.put(make_header(identity, layout))  # last: a store without a header is none


def _open_panel(
    root: "zarr.Group", values: str, status: str, chunk_shape: tuple[int, int]
) -> ZarrPanel:
    arrays = []
    for name, dtype in ((values, np.float64), (status, np.uint8)):
        array: Any = root[name]
        if array.dtype != dtype or array.chunks != chunk_shape:
            raise ValueError(f"array {name!r} does not fit the header")
        arrays.append(array)
    return ZarrPanel(*arrays)


def _read_log(group: "zarr.Group") -> RunLog:
    content: dict[str, Any] = group.attrs.asdict()
    return RunLog(**content)


def _exists(store: str) -> bool:
    filesystem, path = _filesystem(store)
    filesystem.invalidate_cache()
    if filesystem.exists(f"{path}/zarr.json"):
        return True
    if filesystem.exists(path) and filesystem.ls(path):
        raise StoreError(
            f"{store} is not empty and has no zarr.json: it is no store, or a damaged one. "
            "Choose another place, or remove it."
        )
    return False


def _filesystem(store: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs

    filesystem, path = url_to_fs(store)
    return filesystem, str(path)


def _is_local(filesystem: Any) -> bool:
    names = filesystem.protocol  # one or several
    return "file" in ([names] if isinstance(names, str) else names)


def _zarr_store(store: str) -> Any:
    from zarr.storage import FsspecStore, LocalStore

    filesystem, path = _filesystem(store)
    # Zarr's own local store writes a chunk beside its place and then moves it.
    return LocalStore(path) if _is_local(filesystem) else FsspecStore.from_url(store)
