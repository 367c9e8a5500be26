"""What can go wrong, by name."""


class LodlError(Exception):
    """Base of every error that `lodl` raises on purpose."""


class InvalidInputError(LodlError, ValueError):
    """An argument is not what was expected; the message names it."""


class MissingExtraError(LodlError, ImportError):
    """An optional package is needed; the message says how to install it."""


class DataError(LodlError, ValueError):
    """A data file cannot be used; the message names the row, the symbol or the array."""


class ProblemError(LodlError):
    """A problem does not keep its contract: its sense, its shapes, its values."""


class ShapeError(ProblemError):
    """A problem returned something of another shape than it was asked for."""


class FamilyError(LodlError):
    """A loss family does not keep its contract; the message has a line per finding."""


class OracleError(LodlError, RuntimeError):
    """An oracle call failed; the message names instance and sample, the cause is chained."""


class StoreError(LodlError):
    """A store of oracle samples cannot be used: damaged, of another version, of other inputs."""


class LossFileError(LodlError):
    """A loss file cannot be used: damaged, of another version, of other labels."""
