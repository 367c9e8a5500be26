"""The version of the package."""


def package_version() -> str:
    """Return the version of the installed package."""
    from importlib.metadata import version  # slow to import

    return version("lodl")
