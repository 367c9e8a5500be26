"""Instances known by content, and `Draws`: the points at which the solver is called for them."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_context, check_count, check_labels, context_of
from lodl._digest import digest
from lodl._typing import Array, Context
from lodl.errors import InvalidInputError
from lodl.problems import Problem
from lodl.problems._problem import projected
from lodl.samplers import BLOCK_SIZE, Sampler, Scale, label_scale

_ID_SIZE = 16  # bytes


@dataclass(frozen=True, eq=False)
class Instances:
    """Labels with their contexts, each known by its content."""

    y: Array  # labels, shape (n, *label_shape), read-only
    context: Context  # one entry per instance, or None
    keys: Sequence[int] | None  # random streams of the user's `keys`; without them, ids number them
    ids: Sequence[bytes]  # store key of each instance: equal for equal instances
    names: Sequence[int | str] | None = None  # the user's `keys`

    @classmethod
    def of(cls, y: npt.ArrayLike, context: Context, keys: Sequence[Any] | None) -> "Instances":
        """Check all, and identify every instance. Keys replace contexts that have no digest."""
        labels = check_labels(y) + 0.0  # a copy, as points are drawn from it; no -0.0
        labels.flags.writeable = False
        context = check_context(context, len(labels))
        streams = None if keys is None else _check_keys(keys, len(labels))
        keys_of = repeat(b"") if streams is None else (b"key %d" % stream for stream in streams)
        contexts = (_context_bytes(context, i, streams is not None) for i in range(len(labels)))
        shape = repeat(repr(labels.shape[1:]).encode())
        own = () if context is None else (contexts,)
        ids = _hashes(shape, _rows_of(labels), keys_of, *own)
        return cls(labels, context, streams, ids, None if keys is None else list(keys))

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def label_scale(self) -> Array:
        """Standard deviation of each coordinate, in the label's shape; nowhere zero."""
        return label_scale(self.y)

    def stream(self, row: int) -> int:
        """Return the number of an instance's random stream."""
        return int.from_bytes(self.ids[row], "big") if self.keys is None else self.keys[row]

    def take(self, rows: npt.NDArray[np.intp]) -> "Instances":
        """Return some of the instances."""
        numbers = rows.tolist()
        context = None if self.context is None else [self.context[i] for i in numbers]
        keys = None if self.keys is None else [self.keys[i] for i in numbers]
        names = None if self.names is None else [self.names[i] for i in numbers]
        return Instances(self.y[rows], context, keys, [self.ids[i] for i in numbers], names)

    def describe(self, row: int) -> str:
        """Return the name of an instance for messages."""
        name = row if self.names is None else self.names[row]
        return f"{row}" if name == row else f"{row} (key {name!r})"


@dataclass(frozen=True, eq=False)
class Draws:
    """One sampler's points for some instances. They are drawn again whenever they are needed."""

    sampler: Sampler
    seed: int
    scale: Array  # standard deviation of the noise
    n_samples: int  # points per instance
    centres: Array | None  # centres of the points in the labels' shape; None for the labels
    label_shape: tuple[int, ...]
    ids: Sequence[bytes]  # store key of each instance's answers at this sampler's points

    @classmethod
    def of(
        cls, sampler: Sampler, instances: Instances, n_samples: int, seed: int, auto_scale: Array
    ) -> "Draws":
        """Resolve a sampler's scale and centres. `auto_scale` is a store's scale for "auto"."""
        centres = sampler.centres(instances.y)
        is_auto = isinstance(sampler.scale, str) and sampler.scale == "auto"
        if is_auto and not np.array_equal(auto_scale, instances.label_scale):
            scale = auto_scale if np.ptp(auto_scale) > 0 else np.asarray(auto_scale.flat[0])
        else:
            scale = sampler.resolve_scale(instances.y)
        shape, seed = instances.y.shape[1:], check_count("random_state", seed, minimum=0)
        if seed >= 2**64:
            raise InvalidInputError(f"`random_state` must be below 2^64, got {seed}.")
        whole = np.broadcast_to(scale, shape)
        name = digest([type(sampler).__qualname__, sampler.settings(), seed, whole])
        own = None if centres is instances.y else np.asarray(centres)
        centre = repeat(b"") if own is None else _rows_of(own)
        ids, n_samples = instances.ids, check_count("n_samples", n_samples, minimum=0)
        if n_samples:  # else nothing is stored under them
            ids = _hashes(ids, repeat(bytes.fromhex(name)), centre)
        return cls(sampler, seed, np.asarray(scale), n_samples, own, shape, ids)

    def take(self, rows: npt.NDArray[np.intp]) -> "Draws":
        """Return the draws of some instances, light enough to be sent to a worker."""
        centres = None if self.centres is None else self.centres[rows]
        ids = [self.ids[row] for row in rows]
        return replace(self, centres=centres, sampler=self.sampler.take(rows), ids=ids)

    def points(
        self, problem: Problem, instances: Instances, rows: Sequence[int], start: int, stop: int
    ) -> Array:
        """Return points `start` to `stop` of some instances, in the problem's valid range."""
        drawn = self.drawn(instances, rows, start, stop)
        flat = drawn.reshape(-1, *drawn.shape[2:])
        return projected(problem, flat).reshape(drawn.shape)

    def drawn(self, instances: Instances, rows: Sequence[int], start: int, stop: int) -> Array:
        """Return points `start` to `stop` of some instances as the sampler drew them."""
        wanted = slice(rows.start, rows.stop) if isinstance(rows, range) else np.asarray(rows)
        y = instances.y[wanted]
        centres = y if self.centres is None else self.centres[wanted]
        exact = self.sampler.exact(y, centres)
        if stop <= exact.shape[1]:
            return np.array(exact[:, start:stop])
        points = np.empty((len(rows), stop - start, *y.shape[1:]))
        for place, row in enumerate(rows):
            stream = {"seed": self.seed, "key": instances.stream(row)}
            for block in range(start // BLOCK_SIZE, -(-stop // BLOCK_SIZE)):
                offset = block * BLOCK_SIZE
                first, last = max(start - offset, 0), min(stop - offset, BLOCK_SIZE)
                n = last if self._has_stable_prefix else BLOCK_SIZE
                drawn = self.sampler.draw(
                    y[place], centres[place], self.scale, **stream, block=block, n=n
                )
                points[place, offset + first - start : offset + last - start] = drawn[first:last]
        return points

    @cached_property
    def _has_stable_prefix(self) -> bool:
        """Whether the first points can be drawn without the rest of a block."""
        return self.sampler.has_stable_prefix(self.label_shape)

    def n_calls(self, made: npt.NDArray[np.bool_]) -> int:
        """Return the number of solver calls that gave answers, those at labels not included."""
        if not self.sampler.shares_call:
            return int(made.sum())
        return 0 if self.centres is None else int(made.any(axis=1).sum())

    def provenance(self) -> dict[str, Any]:
        """Return what the points depend on, in JSON values."""
        lowest, largest, shape = float(self.scale.min()), float(self.scale.max()), self.scale.shape
        return {
            "sampler": type(self.sampler).__name__,
            "scale": {"shape": list(shape), "min": lowest, "max": largest} if shape else largest,
            "scale_is_auto": isinstance(self.sampler.scale, str),
            "seed": self.seed,
            "n_samples": self.n_samples,
        }


@dataclass(frozen=True, eq=False)
class GivenPoints(Sampler):
    """Points that are given instead of drawn, such as the predictions of several models."""

    given: Array  # shape (n, m, *label_shape)
    scale: Scale = 1.0

    def noise(self, rng: np.random.Generator, n: int, label_shape: tuple[int, ...]) -> Array:
        return np.zeros((n, *label_shape))

    def centres(self, y: Array) -> Array:
        return self.given

    def take(self, instances: slice | npt.NDArray[np.intp]) -> Self:
        return replace(self, given=self.given[instances])

    def settings(self) -> dict[str, Any]:
        return {}

    def exact(self, y: Array, centres: Array) -> Array:
        return centres


def _hashes(*parts: Iterable[bytes | memoryview]) -> list[bytes]:
    """Return the digests of joined parts, as many as the shortest has."""
    whole = map(b"".join, zip(*parts, strict=False))
    return [hashlib.blake2b(content, digest_size=_ID_SIZE).digest() for content in whole]


def _rows_of(array: Array) -> Iterator[memoryview]:
    """Yield the bytes of each row."""
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    size = content.nbytes // len(array)
    return (content[start : start + size] for start in range(0, content.nbytes, size))


def _context_bytes(context: Context, instance: int, has_key: bool) -> bytes:
    """Return the digest of a context, or nothing if it has none and a key replaces it."""
    try:
        return b"" if context is None else bytes.fromhex(digest(context_of(context, instance)))
    except InvalidInputError:
        if has_key:
            return b""
        raise


def _check_keys(keys: Sequence[Any], n_instances: int) -> list[int]:
    """Return the random stream of each key. A whole number is its own stream."""
    if len(keys) != n_instances:
        wanted = f"one entry per instance ({n_instances})"
        raise InvalidInputError(f"`keys` must have {wanted}, got {len(keys)}.")
    streams = []
    for key in keys:
        is_number = isinstance(key, int | np.integer) and not isinstance(key, bool) and key >= 0
        if not is_number and not isinstance(key, str):
            wanted = "whole numbers of at least 0 or strings"
            raise InvalidInputError(f"`keys` must be {wanted}, got {key!r}.")
        streams.append(int(key) if is_number else int.from_bytes(_hashes([key.encode()])[0], "big"))
    return streams
