"""scikit-learn's metadata routing, without scikit-learn."""

import importlib
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from lodl.errors import InvalidInputError

Request = bool | str | None
"""Whether a value is passed on: True, False, the name it has outside, or None for an error."""


class Routed:
    """Says which values besides features and labels scikit-learn should pass on to a method.

    They are passed on by default once routing is on:
    `sklearn.set_config(enable_metadata_routing=True)`.
    """

    _DEFAULTS: ClassVar[Mapping[str, Mapping[str, Request]]] = {}
    """For each method, the values that it takes."""

    def set_fit_request(self, **requests: Request) -> Self:
        """Say whether values are passed on to `fit`: True, False, or their name outside."""
        return self._set_request("fit", requests)

    def set_score_request(self, **requests: Request) -> Self:
        """Say whether values are passed on to `score`: True, False, or their name outside."""
        return self._set_request("score", requests)

    def get_metadata_routing(self) -> Any:
        """Return what scikit-learn asks for: its `MetadataRequest`."""
        routing = importlib.import_module("sklearn.utils.metadata_routing")
        request = routing.MetadataRequest(owner=self)
        for method, defaults in self._DEFAULTS.items():
            for name, default in defaults.items():
                alias = self._requests.get((method, name), default)
                getattr(request, method).add_request(param=name, alias=alias)
        return request

    @property
    def _requests(self) -> dict[tuple[str, str], Request]:
        found: dict[tuple[str, str], Request] = vars(self).get("_own_requests", {})
        return found

    def _set_request(self, method: str, requests: Mapping[str, Request]) -> Self:
        known = self._DEFAULTS.get(method, {})
        for name in requests:
            if name not in known:
                raise InvalidInputError(
                    f"`set_{method}_request` of {type(self).__name__} knows "
                    f"{', '.join(known) or 'no values'}, got {name!r}."
                )
        own = {(method, name): request for name, request in requests.items()}
        self._own_requests = self._requests | own
        return self
