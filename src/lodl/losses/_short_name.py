"""A family as it is written, without what is its default."""

from dataclasses import MISSING, fields

from lodl.losses._family import Family


def short_name(family: Family) -> str:
    """Return the expression that makes a family, without what is its default."""
    changed = [
        f"{field.name}={getattr(family, field.name)!r}"
        for field in fields(family)  # type: ignore[arg-type]  # every family is a dataclass
        if field.default is MISSING or getattr(family, field.name) != field.default
    ]
    return f"{type(family).__name__}({', '.join(changed)})"
