"""How faithful a learned loss is where a model predicts, and what would make it better.

`diagnose` needs a few oracle calls and gives figures, verdicts and words; `loss_slices` gives
curves of the true regret and of learned losses for a figure.
"""

from lodl.diagnostics._slices import loss_slices

__all__ = ["loss_slices"]
