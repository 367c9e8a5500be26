"""Decision-focused learning with the paper's handcrafted surrogates; needs torch."""

from lodl._validation import require

require("torch", extra="torch")

from lodl.benchmarks.surrogates._multilinear import MultilinearRelaxation  # noqa: E402
from lodl.benchmarks.surrogates._quadratic_program import QuadraticProgram  # noqa: E402
from lodl.benchmarks.surrogates._soft_top_k import SoftTopK  # noqa: E402
from lodl.benchmarks.surrogates._spo_plus import SPOPlus  # noqa: E402
from lodl.benchmarks.surrogates._surrogate import Surrogate  # noqa: E402
from lodl.benchmarks.surrogates._surrogate_loss import SurrogateLoss  # noqa: E402

__all__ = [
    "MultilinearRelaxation",
    "QuadraticProgram",
    "SPOPlus",
    "SoftTopK",
    "Surrogate",
    "SurrogateLoss",
]
