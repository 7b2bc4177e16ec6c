"""Instruments to play with in a lesson; each one drives the real object and has a static first view."""

from ampkit.widgets.bit_flipper import bit_flipper
from ampkit.widgets.dashboard import dashboard, watch
from ampkit.widgets.ledger_lab import ledger_lab
from ampkit.widgets.number_line import number_line
from ampkit.widgets.op_policy import op_policy
from ampkit.widgets.scaler_lab import ScalerLab
from ampkit.widgets.scaler_view import scaler_machine

__all__ = ["ScalerLab", "bit_flipper", "dashboard", "ledger_lab", "number_line", "op_policy", "scaler_machine", "watch"]
