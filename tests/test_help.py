"""What `help()` shows of the public names."""

import pydoc

import pytest

import lodl

_MAX_LINES = 350  # scikit-learn's own methods are a hundred of the longest
_MAX_WIDTH = 350  # characters of the longest signature
_FILES = ("results/", "docs/", "benchmarks/", "speed/", "ARCHITECTURE")  # not in the wheel


def help_of(name: str) -> str:
    return pydoc.plain(pydoc.render_doc(getattr(lodl, name)))


@pytest.mark.parametrize("name", lodl.__all__)
def test_help_is_short_and_spells_no_types_of_numpy(name):
    text = help_of(name)
    assert "numpy._typing" not in text
    assert "numpy.ndarray[" not in text
    assert len(text.splitlines()) <= _MAX_LINES
    assert max(map(len, text.splitlines())) <= _MAX_WIDTH


@pytest.mark.parametrize("name", lodl.__all__)
def test_help_names_no_file_that_an_installed_user_lacks(name):
    text = help_of(name)
    assert not [file for file in _FILES if file in text]


def test_help_on_all_names_fits_into_a_short_book():
    assert sum(len(help_of(name).splitlines()) for name in lodl.__all__) < 2_750
