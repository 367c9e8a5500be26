"""Whole files in a folder or behind a URL, each of which appears all at once."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from lodl.errors import InvalidInputError, StoreError

_DRAFT = ".draft-"  # files that are not yet whole
_OLD = 3600.0  # seconds after which nobody writes to a draft any more


class Folder:
    """Whole files in a folder, each of which appears all at once."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self.place = os.fspath(place).removeprefix("file://")
        if not self.place:
            raise InvalidInputError(f"`store` must be a folder or a URL, got {place!r}.")
        self._remote: Any = None
        if "://" in self.place:
            self._remote, self._url = _file_system(self.place)
        else:  # a place that does not move with the working folder
            self.place = os.path.abspath(self.place)  # noqa: PTH100 - symlinks stay
        self._path = Path(self.place)
        self._remove_old_drafts()

    def names(self, prefix: str) -> list[str]:
        if self._remote is not None:
            self._remote.invalidate_cache()
            is_there = self._remote.exists(self._url)
            found = self._remote.ls(self._url, detail=False) if is_there else []
            names = [str(path).rstrip("/").rpartition("/")[2] for path in found]
        else:
            try:
                names = [path.name for path in self._path.iterdir()]
            except FileNotFoundError:
                names = []
            except NotADirectoryError as error:
                raise StoreError(f"{self._path} is a file, not a folder.") from error
            except OSError as error:
                raise StoreError(f"{self.place} cannot be read: {error}.") from error
            except ValueError as error:
                raise InvalidInputError(
                    f"`store` must be a folder or a URL, got {self.place!r} ({error})."
                ) from error
        is_hidden = prefix.startswith(".")
        return [x for x in names if x.startswith(prefix) and x.startswith(".") == is_hidden]

    def read(self, name: str) -> bytes:
        if self._remote is not None:
            return bytes(self._remote.cat_file(f"{self._url}/{name}"))
        path = self._path / name
        if path.exists() and not path.is_file():  # to read a pipe would wait for ever
            raise ValueError("it is not a regular file")
        return path.read_bytes()

    def read_if_there(self, name: str) -> bytes | None:
        try:
            return self.read(name)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, content: bytes) -> None:
        if self._remote is not None:
            self._remote.pipe_file(f"{self._url}/{name}", content)
        else:
            self._draft(content).replace(self._path / name)

    def write_once(self, name: str, content: bytes) -> None:
        """Write a file unless somebody else has: of processes that start together, one wins."""
        if self._remote is not None:
            self.write(name, content)
            return
        self._path.mkdir(parents=True, exist_ok=True)
        draft = self._draft(content)
        try:
            (self._path / name).hardlink_to(draft)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            draft.replace(self._path / name)
        draft.unlink(missing_ok=True)

    def _remove_old_drafts(self) -> None:
        """Remove what a killed process left half written."""
        if self._remote is None:
            for name in self.names(_DRAFT):
                draft = self._path / name
                with suppress(OSError):  # somebody else was faster, or it is a read-only medium
                    if time.time() - draft.stat().st_mtime > _OLD:
                        draft.unlink()

    def _draft(self, content: bytes) -> Path:
        draft = self._path / f"{_DRAFT}{uuid4().hex}"
        try:
            draft.write_bytes(content)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        return draft


def _file_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it."""
    from fsspec.core import url_to_fs

    try:
        file_system, path = url_to_fs(url)
    except (ImportError, ValueError) as error:  # a package is missing, or nobody knows the kind
        raise InvalidInputError(
            f"`store` must be a folder or a URL of a known kind, got {url!r}: {error}."
        ) from error
    return file_system, path
