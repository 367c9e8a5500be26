"""Everything a run fills in: optima, regrets and a log."""

from dataclasses import dataclass, field

from lodl.oracle._layout import Layout
from lodl.oracle._panel import MemoryPanel, Outcomes, Panel


@dataclass
class RunLog:
    """What is worth telling of a run besides its numbers.

    Attributes:
        seconds: Time spent in tasks, summed over workers.
        first_failures: The first message of each kind of failure.
    """

    seconds: float = 0.0
    first_failures: dict[str, str] = field(default_factory=dict)


class Table:
    """Outcomes of a run: in memory here, in a Zarr store in its subclass.

    Attributes:
        note: What a run that breaks off leaves, for the user.
    """

    note = "Nothing is kept; with `store=` what is done is kept and the next run goes on from it."

    def __init__(self, optimum: Panel, regret: Panel, log: RunLog) -> None:
        self.optimum = optimum
        self.regret = regret
        self.log = log

    def save_log(self) -> None:
        """Keeps the log."""


def memory_table(n_instances: int, n_samples: int, layout: Layout) -> Table:
    """Returns an empty table in memory."""
    return Table(
        MemoryPanel(Outcomes.pending((n_instances, 1)), layout.optimum),
        MemoryPanel(Outcomes.pending((n_instances, n_samples)), layout.regret),
        RunLog(),
    )
