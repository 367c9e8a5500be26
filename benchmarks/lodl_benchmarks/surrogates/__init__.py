"""Decision-focused learning with the paper's handcrafted surrogates."""

from lodl_benchmarks.surrogates._multilinear import MultilinearRelaxation
from lodl_benchmarks.surrogates._quadratic_program import QuadraticProgram
from lodl_benchmarks.surrogates._soft_top_k import SoftTopK
from lodl_benchmarks.surrogates._spo_plus import SPOPlus
from lodl_benchmarks.surrogates._surrogate import Surrogate, SurrogateLoss, mean_squared_error

__all__ = [
    "MultilinearRelaxation",
    "QuadraticProgram",
    "SPOPlus",
    "SoftTopK",
    "Surrogate",
    "SurrogateLoss",
    "mean_squared_error",
]
