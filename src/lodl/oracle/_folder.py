"""Whole files in a folder or behind a URL, each of which appears all at once."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from lodl.errors import StoreError

_DRAFT = ".draft-"  # files that are not yet whole
_OLD = 3600.0  # seconds after which nobody writes to a draft any more


class Folder:
    """Whole files in a folder, each of which appears all at once."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._remote: Any = None
        if "://" in place:
            from fsspec.core import url_to_fs

            self._remote, self._place = url_to_fs(place)

    def names(self, prefix: str) -> list[str]:
        if self._remote is not None:
            self._remote.invalidate_cache()
            found = self._remote.ls(self._place, detail=False) if self._exists() else []
            names = [str(path).rstrip("/").rpartition("/")[2] for path in found]
        else:
            try:
                names = os.listdir(self._place)  # noqa: PTH208 - names are what is wanted
            except FileNotFoundError:
                names = []
            except NotADirectoryError as error:
                raise StoreError(f"{self._place} is a file, not a folder.") from error
        return [name for name in names if name.startswith(prefix) and not name.startswith(".")]

    def read(self, name: str) -> bytes:
        if self._remote is not None:
            return bytes(self._remote.cat_file(f"{self._place}/{name}"))
        return Path(self._place, name).read_bytes()

    def read_if_there(self, name: str) -> bytes | None:
        try:
            return self.read(name)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, content: bytes) -> None:
        if self._remote is not None:
            self._remote.pipe_file(f"{self._place}/{name}", content)
            return
        draft = self._draft(content)
        os.replace(draft, Path(self._place, name))  # noqa: PTH105 - symmetrical with `link` below

    def write_once(self, name: str, content: bytes) -> None:
        """Write a file unless somebody else has: of processes that start together, one wins."""
        if self._remote is not None:
            self.write(name, content)
            return
        Path(self._place).mkdir(parents=True, exist_ok=True)
        draft = self._draft(content)
        try:
            os.link(draft, Path(self._place, name))
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            os.replace(draft, Path(self._place, name))  # noqa: PTH105
            return
        os.unlink(draft)  # noqa: PTH108

    def remove_old_drafts(self) -> None:
        """Remove what a killed process left half written."""
        if self._remote is None:
            for draft in Path(self._place).glob(f"{_DRAFT}*"):
                with suppress(OSError):  # somebody else was faster, or it is a read-only medium
                    if time.time() - draft.stat().st_mtime > _OLD:
                        draft.unlink()

    def _exists(self) -> bool:
        return bool(self._remote.exists(self._place))

    def _draft(self, content: bytes) -> str:
        draft = os.path.join(self._place, f"{_DRAFT}{uuid4().hex}")  # noqa: PTH118
        try:
            with open(draft, "wb") as file:  # noqa: PTH123
                file.write(content)
        except BaseException:
            if os.path.exists(draft):  # noqa: PTH110
                os.unlink(draft)  # noqa: PTH108
            raise
        return draft
