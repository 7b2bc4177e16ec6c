"""An operation of the table has no entry in your dict, or one under another name. An operation that is not there counts as
wrong; keep the twelve keys of the cell as they are, and compare yours with the table.
"""

PREDICTED = {
    "linear": "float16",
    "embedding": "float32",
    "layer_norm": "float32",
    "softmax": "float32",
    "batch_norm": "float16",
    "relu": "float16",
    "mul": "float16",
    "pow": "float32",
    "cat": "float32",
    "sum": "float32",
    "cross_entropy": "float32",
}
