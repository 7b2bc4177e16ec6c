"""Your scale depends on one of the tensors only, so something in another one overflows FP16. Look at what your loop keeps of
a tensor when it comes to the next one, or at which tensor you ask."""


def choose_init_scale(grads):
    largest = grads[-1].abs().max()
    if largest == 0:
        return 65536.0
    for exponent in range(24, 0, -1):
        if (largest * 2.0**exponent).half().isfinite():
            return 2.0**exponent
    return 1.0
