"""The op inspector: the dtype that each op and module of a model computes in under autocast, and why.

policy, policies    what autocast of a device type does with an op, asked of the installed PyTorch
inspect             every op of a model's forward pass, in order, with the casts that autocast inserts
"""

from ampkit.ops.cast_lists import CATEGORIES, DEVICE_TYPES, Policy, listed_ops, policies, policy
from ampkit.ops.inspection import Inspection, ModuleSummary, OpRecord, Stop, inspect
from ampkit.ops.watch import Cast, Kernel, TensorInfo

__all__ = [
    "CATEGORIES",
    "DEVICE_TYPES",
    "Cast",
    "Inspection",
    "Kernel",
    "ModuleSummary",
    "OpRecord",
    "Policy",
    "Stop",
    "TensorInfo",
    "inspect",
    "listed_ops",
    "policies",
    "policy",
]
