"""Whether instances can learn from each other's decisions."""

from lodl._typing import Context
from lodl.errors import InvalidInputError
from lodl.losses import Family
from lodl.losses._decision_family import check_made_of_decisions


def check_sharing(family: Family, context: Context, *, is_affine: bool) -> None:
    """Check that what was decided for one instance is known at all others."""
    check_made_of_decisions(family)
    if context is not None:
        raise InvalidInputError("With a `context` instances cannot `share` their decisions.")
    if not is_affine:
        raise InvalidInputError(
            "Instances can `share` their decisions only if the objective is affine in the label, "
            "which this one was not found to be."
        )
