"""Loss families, and losses learned from them."""

from lodl.losses._comparison import compare_losses
from lodl.losses._convex_directed_quadratic import ConvexDirectedQuadratic
from lodl.losses._decision_hinges import DecisionHinges
from lodl.losses._decision_ranking import DecisionRanking
from lodl.losses._directed_quadratic import DirectedQuadratic
from lodl.losses._directed_weighted_mae import DirectedWeightedMAE
from lodl.losses._directed_weighted_mse import DirectedWeightedMSE
from lodl.losses._family import Family, Parameters, Tensor
from lodl.losses._fit import fit
from lodl.losses._fit_errors import FitErrors, FitStatus
from lodl.losses._fit_shared import fit_shared
from lodl.losses._learned_loss import LearnedLoss, load_loss
from lodl.losses._mean_squared_error import mean_squared_error
from lodl.losses._neural import NeuralLoss
from lodl.losses._pooled import fit_pooled
from lodl.losses._quadratic import Quadratic
from lodl.losses._squared_error_loss import squared_error_loss
from lodl.losses._summary import FitSummary, Spread
from lodl.losses._verdicts import Finding, Verdict
from lodl.losses._weighted_mse import WeightedMSE
from lodl.oracle import Answers

__all__ = [
    "Answers",
    "ConvexDirectedQuadratic",
    "DecisionHinges",
    "DecisionRanking",
    "DirectedQuadratic",
    "DirectedWeightedMAE",
    "DirectedWeightedMSE",
    "Family",
    "Finding",
    "FitErrors",
    "FitStatus",
    "FitSummary",
    "LearnedLoss",
    "NeuralLoss",
    "Parameters",
    "Quadratic",
    "Spread",
    "Tensor",
    "Verdict",
    "WeightedMSE",
    "compare_losses",
    "fit",
    "fit_pooled",
    "fit_shared",
    "load_loss",
    "mean_squared_error",
    "squared_error_loss",
]
