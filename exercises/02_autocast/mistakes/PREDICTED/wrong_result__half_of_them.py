"""Half of the twelve have no prediction. An entry that is empty counts as wrong, and the ones that seem to need no
thought are where autocast surprises most; fill in a guess, run the check, then read it from PyTorch.
"""

PREDICTED = {
    "linear": "float16",
    "embedding": "float32",
    "layer_norm": "float32",
    "softmax": "float32",
    "batch_norm": "",
    "relu": "float16",
    "mul": "float16",
    "pow": "",
    "cat": "",
    "sum": "",
    "cross_entropy": "",
    "sdpa": "",
}
