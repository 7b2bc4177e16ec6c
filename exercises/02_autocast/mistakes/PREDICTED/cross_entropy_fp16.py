"""The loss is predicted in FP16, the dtype of its logits. It is made of a log-softmax and a mean, and on CUDA both
are on one of autocast's lists; if losses came out in FP16, one of 65504 could not be told from infinity.
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
    "cross_entropy": "float16",
    "sdpa": "float16",
}
