"""The header of a store: whose outcomes it holds."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lodl.errors import StoreError
from lodl.oracle._layout import Layout
from lodl.samplers._sampler import BLOCK_SIZE

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class StoreIdentity:
    """What the outcomes in a store depend on.

    Attributes:
        n_instances: Number of instances.
        seed: Seed of the candidates.
        fingerprints: Digests of problem, labels, context and sampler.
        first_draw: A few numbers about the first candidates. They are not stored, and NumPy may one
            day draw other ones from the same seed.
    """

    n_instances: int
    seed: int
    fingerprints: Mapping[str, str]
    first_draw: tuple[float, ...]


def make_header(identity: StoreIdentity, layout: Layout) -> dict[str, Any]:
    """Returns the attributes of a new store."""
    header = {
        "schema_version": SCHEMA_VERSION,
        "block_size": BLOCK_SIZE,
        "chunks": {name: list(shape) for name, shape in asdict(layout).items()},
        **asdict(identity),
    }
    return header | {"checksum": _checksum(header)}


def check_header(store: str, header: Mapping[str, Any], identity: StoreIdentity) -> Layout:
    """Demands a sound header of this identity, and returns the chunk shapes."""
    version = header.get("schema_version")
    if not isinstance(version, int):
        raise StoreError(
            f"{store} is not a store of oracle samples, or was never finished being made. "
            "Choose another place, or remove it."
        )
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{store} was written by a newer version of lodl (schema {version}, this one reads "
            f"{SCHEMA_VERSION}). Upgrade lodl."
        )
    if header.get("checksum") != _checksum(header):
        raise StoreError(f"The header of {store} is damaged. Restore its zarr.json, or remove it.")
    differing = [
        name
        for name, here in _flat(identity).items()
        if (header["fingerprints"] | header).get(name) != here
    ]
    if differing:
        hint = (
            " Is the problem the same but for a cache or a counter in it? Leave that out of its "
            "`__getstate__`."
        )
        raise StoreError(
            f"{store} holds samples of other inputs: different {', '.join(differing)}. "
            f"Choose another store.{hint if 'problem' in differing else ''}"
        )
    if not np.allclose(header["first_draw"], identity.first_draw, rtol=1e-6, atol=0):
        raise StoreError(
            f"{store} holds regrets of other candidates: this version of NumPy draws other numbers "
            "from the same seed. Use the version that made it, or choose another store."
        )
    chunks = header["chunks"]
    return Layout(optimum=tuple(chunks["optimum"]), regret=tuple(chunks["regret"]))


def _flat(identity: StoreIdentity) -> dict[str, Any]:
    return {
        "seed": identity.seed,
        "block_size": BLOCK_SIZE,
        "n_instances": identity.n_instances,
        **identity.fingerprints,
    }


def _checksum(header: Mapping[str, Any]) -> str:
    content = {name: value for name, value in header.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
