"""Style of the site's figures, and silence for what examples log."""

import logging
from typing import Any

BLUE, ORANGE, GREY = "#2a6fbb", "#e07b39", "#8a8f98"


def reset(gallery_conf: Any = None, fname: Any = None) -> None:
    """Set the style of figures before an example or a page is run."""
    import matplotlib as mpl

    mpl.use("agg")
    mpl.rcdefaults()
    mpl.rcParams.update(
        {
            "axes.prop_cycle": mpl.cycler(color=[BLUE, ORANGE, "#4c9f70", "#b8548c", GREY]),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlesize": "medium",
            "axes.titleweight": "bold",
            "figure.constrained_layout.use": True,
            "figure.figsize": (7.2, 3.6),
            "font.size": 10,
            "legend.frameon": False,
        }
    )
    logging.getLogger("lodl").setLevel(logging.ERROR)
