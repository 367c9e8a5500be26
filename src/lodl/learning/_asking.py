"""The oracle, with all that stays the same from one question of `fit` to the next."""

from dataclasses import dataclass

from lodl.learning._data import Data
from lodl.learning._fitted import Asker
from lodl.oracle import OracleSamples, Store, sample
from lodl.samplers import Sampler


@dataclass(frozen=True, eq=False)
class Asking:
    """Asks about candidates of a sampler at every instance, as a regressor was told to.

    Attributes:
        model: Has the problem, and the parameters of oracle calls.
        data: The instances.
        store: Keeps the answers.
    """

    model: Asker
    data: Data
    store: Store

    @property
    def _slopes(self) -> bool:
        """Whether a loss needs them: where they come from differences they may cost the most."""
        families = self.model.families
        is_used = families is None or any(family.uses_slopes for family in families)
        return is_used or self.model.judge == "pool"

    def __call__(
        self, sampler: Sampler, n_samples: int, *, n_instances: int | None = None
    ) -> OracleSamples:
        """Return the answers about all instances, or about the first `n_instances`."""
        context = self.data.context
        return sample(
            self.model.problem,
            self.data.y[:n_instances],
            context=None if context is None else context[:n_instances],
            sampler=sampler,
            n_samples=n_samples,
            seed=self.model.random_state,
            slopes=self._slopes,
            n_jobs=self.model.n_jobs,
            store=self.store,
            timeout=self.model.timeout,
            on_failure=self.model.on_failure,
            progress=self.model.verbose,
        )
