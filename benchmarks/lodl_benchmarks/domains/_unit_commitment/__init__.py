"""Unit commitment: decide which power plants run tomorrow."""

from lodl_benchmarks.domains._unit_commitment._domain import unit_commitment
from lodl_benchmarks.domains._unit_commitment._problem import UnitCommitment

__all__ = ["UnitCommitment", "unit_commitment"]
