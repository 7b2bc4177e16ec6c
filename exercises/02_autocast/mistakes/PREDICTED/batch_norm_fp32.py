"""You let batch norm give FP32, as many texts have it. Its statistics and weights are FP32 because nobody converts
them; the question is whether its name is on one of CUDA's lists, and what an operation on no list does with an FP16
activation.
"""

PREDICTED = {
    "linear": "float16",
    "embedding": "float32",
    "layer_norm": "float32",
    "softmax": "float32",
    "batch_norm": "float32",
    "relu": "float16",
    "mul": "float16",
    "pow": "float32",
    "cat": "float32",
    "sum": "float32",
    "cross_entropy": "float32",
    "sdpa": "float16",
}
