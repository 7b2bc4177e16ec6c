"""Only one of the two losses was multiplied by the scale (2). Follow the other one from its backward to its step: who
divides its gradients, and who would notice if they overflowed?
"""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d).backward()
    loss_g.backward()
    scaler.step(opt_d)
    scaler.step(opt_g)
    scaler.update()
