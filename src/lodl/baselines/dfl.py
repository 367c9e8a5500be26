"""Decision-focused learning with the paper's handcrafted surrogates; needs torch."""

from lodl.validation import require

require("torch", extra="torch")

from lodl.baselines._decision_loss import DecisionLoss  # noqa: E402
from lodl.baselines._multilinear import MultilinearRelaxation  # noqa: E402
from lodl.baselines._quadratic_program import QuadraticProgram  # noqa: E402
from lodl.baselines._soft_top_k import SoftTopK  # noqa: E402
from lodl.baselines._surrogate import Surrogate  # noqa: E402

__all__ = ["DecisionLoss", "MultilinearRelaxation", "QuadraticProgram", "SoftTopK", "Surrogate"]
