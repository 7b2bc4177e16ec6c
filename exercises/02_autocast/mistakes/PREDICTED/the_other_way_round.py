"""Nearly every entry is the opposite of what PyTorch does. Products of matrices are what FP16 hardware is built for;
sums, exponentials and norms are where FP16 overflows or loses digits. Which of the two does autocast send to FP16?
"""

PREDICTED = {
    "linear": "float32",
    "embedding": "float16",
    "layer_norm": "float16",
    "softmax": "float16",
    "batch_norm": "float32",
    "relu": "float32",
    "mul": "float32",
    "pow": "float16",
    "cat": "float16",
    "sum": "float16",
    "cross_entropy": "float16",
    "sdpa": "float32",
}
