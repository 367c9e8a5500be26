"""Click rates from a file of matrices, for owners of the paper's data."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.domains._web_advertising import ClickRates, Crop
from lodl.errors import DataError
from lodl_benchmarks.domains._array_archive import UNREADABLE, open_npz
from lodl_benchmarks.domains._array_pickle import load_arrays


@dataclass(frozen=True, eq=False)
class ClickMatrices(ClickRates):
    """Given matrices of click rates; each serves one instance at most.

    Attributes:
        matrices: Arrays (websites, users) of one shape, or one array with the matrix first.
    """

    matrices: Sequence[npt.NDArray[np.floating]] | npt.NDArray[np.floating]

    def __post_init__(self) -> None:
        if len(self.matrices) == 0:
            raise DataError("There must be at least one matrix of click rates, got none.")
        for number, matrix in enumerate(self.matrices):
            if matrix.ndim != 2 or matrix.shape != self.matrices[0].shape:
                raise DataError(
                    "Click rates must be matrices (websites, users) of one shape: matrix 0 has "
                    f"shape {self.matrices[0].shape}, matrix {number} has {matrix.shape}."
                )

    @property
    def shape(self) -> tuple[int, int]:
        n_sites, n_users = self.matrices[0].shape
        return n_sites, n_users

    def draw(self, crops: Sequence[Crop], rng: np.random.Generator) -> list[Array]:
        order = rng.permutation(len(self.matrices))
        ends = np.cumsum([crop.n_instances for crop in crops])
        if ends[-1] > len(order):
            raise DataError(
                f"There must be a matrix for each of {ends[-1]} instances, got {len(order)}."
            )
        return [
            np.stack([self._instance(crop, number) for number in numbers])
            for crop, numbers in zip(crops, np.split(order[: ends[-1]], ends[:-1]), strict=True)
        ]

    def _instance(self, crop: Crop, number: int) -> Array:
        rates = self.matrices[number][np.ix_(crop.sites, crop.users)].astype(np.float64)
        if not ((rates >= 0) & (rates <= 1)).all():
            raise DataError(f"Click rates must be in [0, 1]; matrix {number} has others.")
        return rates


def read_click_matrices(path: str | Path) -> ClickMatrices:
    """Read matrices of click rates from `.npy`, `.npz` or the authors' `.pkl`.

    Args:
        path: An `.npy` file with an array (matrices, websites, users); an `.npz` file with one such
            array; or a pickle of (list of matrices, anything), which is read without running any
            code that it names.
    """
    path = Path(path)
    if path.suffix == ".pkl":
        return ClickMatrices(load_arrays(path))
    try:
        return ClickMatrices(_load_npz(path) if path.suffix == ".npz" else _map_npy(path))
    except DataError:
        raise
    except UNREADABLE as error:
        raise DataError(f"{path} must be an .npy file, or an .npz of one array: {error}") from error


def _map_npy(path: Path) -> npt.NDArray[np.floating]:
    return np.lib.format.open_memmap(path, mode="r")


def _load_npz(path: Path) -> npt.NDArray[np.floating]:
    with open_npz(path) as arrays:
        (name,) = arrays.files
        matrices: npt.NDArray[np.floating] = arrays[name]
        return matrices
