"""Instruments to play with in a lesson; each one drives the real PyTorch object and has a static first view."""

from ampkit.widgets.scaler_lab import ScalerLab
from ampkit.widgets.scaler_view import scaler_machine

__all__ = ["ScalerLab", "scaler_machine"]
