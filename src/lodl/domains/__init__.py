"""The paper's domains: each joins data, a problem, and the shape of a model."""

from lodl.domains._domain import Domain, ModelShape
from lodl.domains._linear_model import linear_model
from lodl.domains._portfolio import portfolio
from lodl.domains._web_advertising import web_advertising

__all__ = ["Domain", "ModelShape", "linear_model", "portfolio", "web_advertising"]
