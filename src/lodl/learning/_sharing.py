"""Whether instances can learn from each other's decisions."""

from lodl._typing import Context
from lodl.errors import InvalidInputError
from lodl.losses import DecisionFamily, Family


def check_sharing(family: Family, context: Context, *, is_affine: bool) -> None:
    """Check that what was decided for one instance is known at all others."""
    if not isinstance(family, DecisionFamily):
        raise InvalidInputError(
            "`family` must be a decision family such as `lodl.DecisionHinges()` to `share` "
            f"decisions, got {family}."
        )
    if context is not None:
        raise InvalidInputError("With a `context` instances cannot `share` their decisions.")
    if not is_affine:
        raise InvalidInputError(
            "Instances can `share` their decisions only if the objective is affine in the label, "
            "which this one was not found to be."
        )
