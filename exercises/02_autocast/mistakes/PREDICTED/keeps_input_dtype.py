"""Each result is predicted in the dtype that goes in, as without autocast. That holds for what is on no list. What is
on a list is cast on its way in, whichever dtype its inputs have; look for the names on CUDA's two long lists.
"""

PREDICTED = {
    "linear": "float32",
    "embedding": "float32",
    "layer_norm": "float16",
    "softmax": "float16",
    "batch_norm": "float16",
    "relu": "float16",
    "mul": "float16",
    "pow": "float16",
    "cat": "float32",
    "sum": "float16",
    "cross_entropy": "float16",
    "sdpa": "float32",
}
