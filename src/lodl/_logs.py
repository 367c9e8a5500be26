"""What `lodl` logs, shown to those who ask for it."""

import logging


def show_logs() -> None:
    """Show messages of level INFO on standard error, unless logging has been set up already."""
    logger = logging.getLogger("lodl")
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(message)s"))
        logger.addHandler(handler)
    logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))
