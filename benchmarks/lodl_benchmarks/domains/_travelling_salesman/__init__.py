"""Travelling salesman: data, problem and model shape."""

from lodl_benchmarks.domains._travelling_salesman._domain import travelling_salesman
from lodl_benchmarks.domains._travelling_salesman._problem import TravellingSalesman

__all__ = ["TravellingSalesman", "travelling_salesman"]
