"""How faithful a learned loss is where a model predicts, and what would make it better.

`diagnose` needs a few oracle calls and gives figures, verdicts and words; `loss_slices` gives
curves of the true regret and of learned losses for a figure.
"""

from lodl.diagnostics._diagnose import diagnose
from lodl.diagnostics._diagnosis import Diagnosis
from lodl.diagnostics._fidelity import Fidelity, InstanceError
from lodl.diagnostics._region import Region
from lodl.diagnostics._slices import loss_slices
from lodl.diagnostics._verdicts import Verdict

__all__ = [
    "Diagnosis",
    "Fidelity",
    "InstanceError",
    "Region",
    "Verdict",
    "diagnose",
    "loss_slices",
]
