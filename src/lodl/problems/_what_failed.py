"""The message of an exception in a problem's function, with a hint if a context is missing."""

import dis
from types import FrameType

from lodl._typing import InstanceContext


def what_failed(error: BaseException, context: InstanceContext) -> str:
    """Return the type and message of an exception, with a hint if a context seems to be missing.

    Args:
        error: The exception, with its traceback.
        context: The context of the instance, or None.
    """
    text = f"{type(error).__name__}: {error}"
    if context is None and _is_about_none(error) and _uses_an_argument_that_is_none(error):
        text = f"{text.rstrip('.')}. No `context` was given, but the problem's functions take one."
    return text


def _is_about_none(error: BaseException) -> bool:
    return isinstance(error, TypeError | AttributeError) and "None" in str(error)


def _uses_an_argument_that_is_none(error: BaseException) -> bool:
    """Return whether an argument of the function that raised is None and is used in it."""
    frame = _innermost(error)
    if frame is None:
        return False
    code, values = frame.f_code, frame.f_locals
    given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    given += code.co_freevars  # inside a comprehension
    none = {name for name in given if name in values and values[name] is None}
    used = (step.argval for step in dis.get_instructions(code))  # one name, or two at once
    return any(none & set(names if isinstance(names, tuple) else [names]) for names in used)


def _innermost(error: BaseException) -> FrameType | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame
