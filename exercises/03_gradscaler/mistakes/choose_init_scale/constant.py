"""The scale is the same whatever the gradients are. Compare what you return for two failing inputs, and ask which
number in them it should depend on."""


def choose_init_scale(grads):
    return 65536.0
