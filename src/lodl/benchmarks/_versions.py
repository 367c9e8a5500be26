"""The packages that a result depends on."""

from importlib.metadata import version

_PACKAGES = ("lodl", "numpy", "scipy", "torch")


def versions() -> dict[str, str]:
    """Returns their versions by name."""
    return {name: version(name) for name in _PACKAGES}
