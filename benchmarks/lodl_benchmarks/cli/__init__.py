"""Commands that this package adds to `lodl`: benchmark, domains and reproduce."""

from lodl_benchmarks.cli._benchmark import benchmark
from lodl_benchmarks.cli._domains import domains
from lodl_benchmarks.cli._report import report
from lodl_benchmarks.cli._reproduce import reproduce

__all__ = ["benchmark", "domains", "reproduce"]

benchmark.command()(report)
