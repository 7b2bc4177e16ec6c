"""The scheduler advanced in a call in which the scaler had skipped the step. If you compare two readings of the scale
to find out, look at what lies between them: nothing but the update in 4 changes it.
"""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
    return True
