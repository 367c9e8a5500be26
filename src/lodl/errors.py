"""The errors that `lodl` raises."""


class LodlError(Exception):
    """Base class of every error that `lodl` raises deliberately."""


class InvalidInputError(LodlError, ValueError):
    """An argument is not what was expected; the message names it."""


class MissingExtraError(LodlError, ImportError):
    """An optional package is needed; the message says how to install it."""


class DataError(LodlError, ValueError):
    """A data file cannot be used; the message names the row, the symbol or the array."""


class ProblemError(LodlError):
    """A problem breaks its contract: its sense, its shapes or its values."""


class ShapeError(ProblemError):
    """A problem returned something of the wrong shape."""


class FamilyError(LodlError):
    """A loss family breaks its contract; the message has a line per finding."""


class LearnerError(LodlError):
    """A learner breaks its contract; the message has a line per finding."""


class OracleError(LodlError, RuntimeError):
    """A solver call failed; the message names the instance, and the cause is chained."""


class StoreError(LodlError):
    """A store of oracle answers cannot be used: it is damaged, or of another version or input."""


class LossFileError(LodlError):
    """A loss file cannot be used: it is damaged, or of another version."""


class ModelFolderError(LodlError):
    """The folder of a saved model cannot be used: it is damaged, or of another version."""
