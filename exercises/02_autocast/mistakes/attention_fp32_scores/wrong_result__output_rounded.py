"""The output is FP32 and has FP16's digits: the weighted sum, or all of the attention, was computed or stored in FP16
and cast up afterwards. A cast brings no digits back; look at the dtype of each result on the way."""

from torch.nn import functional as F


def attention_fp32_scores(q, k, v, device_type):
    return F.scaled_dot_product_attention(q.float(), k.float(), v.float()).float()
