"""Gradient boosting on learned losses: a module each for XGBoost, LightGBM and CatBoost."""
