import os
from pathlib import Path

import pytest


@pytest.fixture
def data_file():
    """Finds a real data file by name; a test that asks for one is skipped where it is absent."""
    beside = Path(__file__).parents[3].parent / "shared" / "data"
    folder = Path(os.environ.get("LODL_DATA", beside))

    def find(name):
        if not (folder / name).exists():
            pytest.skip(f"{name} is not in the folder of data files (set LODL_DATA)")
        return folder / name

    return find
