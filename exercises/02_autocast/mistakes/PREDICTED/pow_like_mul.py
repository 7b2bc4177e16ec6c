"""h * h and h ** 2 are predicted alike, since they are the same number. Autocast knows names and not formulas: one of
the two is on a list, and the other computes in what it is given.
"""

PREDICTED = {
    "linear": "float16",
    "embedding": "float32",
    "layer_norm": "float32",
    "softmax": "float32",
    "batch_norm": "float16",
    "relu": "float16",
    "mul": "float16",
    "pow": "float16",
    "cat": "float32",
    "sum": "float32",
    "cross_entropy": "float32",
    "sdpa": "float16",
}
