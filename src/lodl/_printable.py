"""Texts of users as a terminal or a page may show them: without control characters."""

import unicodedata

_SPACE = "Zs"  # Unicode category


def printable(text: str) -> str:
    r"""Return a text in which control characters are written out: a newline as `\n`.

    Newlines, escape sequences of terminals and marks that turn the direction of writing could
    otherwise make a name look like something else.
    """
    if text.isprintable():
        return text
    return "".join(
        sign
        if sign.isprintable() or unicodedata.category(sign) == _SPACE
        else sign.encode("unicode_escape").decode()
        for sign in text
    )
