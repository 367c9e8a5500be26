"""Web Advertising: data, problem and model shape of the paper's second domain."""

from lodl.domains._web_advertising._click_rates import ClickRates, Crop, GeneratedClickRates
from lodl.domains._web_advertising._domain import web_advertising
from lodl.domains._web_advertising._problem import WebAdvertising

__all__ = [
    "ClickRates",
    "Crop",
    "GeneratedClickRates",
    "WebAdvertising",
    "web_advertising",
]
