import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    @torch.autocast(device_type, dtype=torch.bfloat16)
    def forward(x, y):
        return loss_fn(model(x), y)

    def step(x, y):
        loss = forward(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return [step(x, y) for x, y in batches]
