LOW = ["linear", "sdpa", "batch_norm", "relu", "mul"]
HIGH = ["embedding", "layer_norm", "softmax", "pow", "cat", "sum", "cross_entropy"]
PREDICTED = {name: "FP16" for name in LOW} | {name: "FP32" for name in HIGH}
