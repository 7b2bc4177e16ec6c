import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F


def predict():
    was = torch.is_autocast_enabled("cuda")
    with FakeTensorMode():
        torch.set_autocast_enabled("cuda", True)
        torch.set_autocast_dtype("cuda", torch.float16)
        try:
            h = torch.empty(2, 4, dtype=torch.float16, device="cuda")
            x = torch.empty(2, 4, device="cuda")
            y = torch.empty(2, dtype=torch.int64, device="cuda")
            found = {
                "linear": F.linear(x, x),
                "embedding": F.embedding(y, x),
                "layer_norm": F.layer_norm(h, (4,), x[0], x[1]),
                "softmax": h.softmax(-1),
                "relu": h.relu(),
                "mul": h * h,
                "pow": h**2,
                "cat": torch.cat([h, x]),
                "sum": h.sum(),
                "cross_entropy": F.cross_entropy(h, y),
            }
            return {name: str(tensor.dtype)[6:] for name, tensor in found.items()}
        finally:
            torch.set_autocast_enabled("cuda", was)


PREDICTED = predict()
PREDICTED["batch_norm"] = PREDICTED["relu"]  # on no list either
PREDICTED["sdpa"] = PREDICTED["linear"]  # on the list of lower precision too
