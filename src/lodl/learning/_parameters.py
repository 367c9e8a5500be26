"""The conventions of scikit-learn's estimators, without scikit-learn."""

import importlib
import inspect
from copy import deepcopy
from typing import Any, Self

from lodl.errors import InvalidInputError
from lodl.learning._routing import Routed

_SHARED = ("problem", "store")  # never copied: solver handles and open files


class Parameters(Routed):
    """Parameters that can be read, set and cloned: those of `__init__`, kept as they were given.

    scikit-learn's `clone`, `cross_val_score` and `GridSearchCV` find what they look for here, so
    that an estimator need not derive from its classes and scikit-learn need not be installed.
    """

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Args:
            deep: Whether to include those of the inner estimator, as `estimator__alpha`.
        """
        params = {name: getattr(self, name) for name in self._names()}
        if deep:
            for name, value in list(params.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    inner = value.get_params().items()
                    params.update({f"{name}__{key}": one for key, one in inner})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, those of the inner estimator as `estimator__alpha`."""
        names = self._names()
        inner: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, _, rest = key.partition("__")
            if name not in names:
                raise InvalidInputError(
                    f"{type(self).__name__} has no parameter {name!r}. Its parameters are "
                    f"{', '.join(names)}."
                )
            if rest:
                inner.setdefault(name, {})[rest] = value
            else:
                setattr(self, name, value)
        for name, nested in inner.items():
            getattr(self, name).set_params(**nested)
        return self

    def __sklearn_clone__(self) -> Self:
        """Return an estimator that is not fitted, with the same problem and the same store."""
        params = self.get_params(deep=False)
        clone = type(self)(
            **{name: value if name in _SHARED else _copied(value) for name, value in params.items()}
        )
        clone._own_requests = dict(self._requests)
        return clone

    def __sklearn_is_fitted__(self) -> bool:
        return any(name.endswith("_") and not name.endswith("__") for name in vars(self))

    def __sklearn_tags__(self) -> Any:
        tags = importlib.import_module("sklearn.utils")
        return tags.Tags(
            estimator_type="regressor",
            target_tags=tags.TargetTags(required=True, multi_output=True),
            regressor_tags=tags.RegressorTags(),
            input_tags=tags.InputTags(three_d_array=True, allow_nan=self._takes_missing()),
        )

    def _takes_missing(self) -> bool:
        """Return whether the inner estimator takes NaN; a linear model does not."""
        inner: Any = getattr(self, "estimator", None)
        has_tags = hasattr(inner, "__sklearn_tags__") and not isinstance(inner, type)
        return has_tags and bool(inner.__sklearn_tags__().input_tags.allow_nan)

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        given = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if value is not defaults[name].default
        ]
        return f"{type(self).__name__}({', '.join(given)})"


def _copied(value: Any) -> Any:
    if hasattr(value, "get_params") and not isinstance(value, type):
        return importlib.import_module("sklearn.base").clone(value)
    return deepcopy(value)
