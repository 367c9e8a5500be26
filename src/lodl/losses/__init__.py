"""Parametric loss families, their fits to samples, and learned losses."""

from lodl.losses._decision_family import DecisionFamily
from lodl.losses._decision_hinges import DecisionHinges
from lodl.losses._decision_ranking import DecisionRanking
from lodl.losses._directed_quadratic import DirectedQuadratic
from lodl.losses._directed_weighted_mae import DirectedWeightedMAE
from lodl.losses._family import Family, Parameters, Tensor
from lodl.losses._fit import fit
from lodl.losses._fit_shared import fit_shared
from lodl.losses._learned_loss import FitErrors, FitStatus, LearnedLoss, load_loss
from lodl.losses._neural import NeuralLoss
from lodl.losses._pooled import fit_pooled
from lodl.losses._quadratic import Quadratic
from lodl.losses._weighted_mse import (
    DirectedWeightedMSE,
    WeightedMSE,
    is_squared_error,
    squared_error_loss,
)

__all__ = [
    "DecisionFamily",
    "DecisionHinges",
    "DecisionRanking",
    "DirectedQuadratic",
    "DirectedWeightedMAE",
    "DirectedWeightedMSE",
    "Family",
    "FitErrors",
    "FitStatus",
    "LearnedLoss",
    "NeuralLoss",
    "Parameters",
    "Quadratic",
    "Tensor",
    "WeightedMSE",
    "fit",
    "fit_pooled",
    "fit_shared",
    "is_squared_error",
    "load_loss",
    "squared_error_loss",
]
