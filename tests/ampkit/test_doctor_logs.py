"""diagnose: real logs of broken runs get their state and its evidence, and healthy runs are called healthy."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from ampkit import ReportError, StepReport, models, write_reports
from ampkit.data import Dataset, digits
from ampkit.doctor import diagnose, diagnose_log, read_log
from ampkit.loops import LADDER
from ampkit.loops.run import reports


def trained(name, *, steps=40, make=models.mlp, **options):
    torch.manual_seed(0)
    return list(reports(name, make(), device="cpu", steps=steps, **options))


def step(number, **changes):
    values = dict(loss=2.0, grad_norm=0.5, scale=65536.0, skipped=False, samples=8, seconds=0.1, peak_bytes=None)
    return StepReport(step=number, **{**values, **changes})


def only(steps, **options):
    diagnosis = diagnose(steps, **options)
    assert len(diagnosis.findings) == 1, str(diagnosis)
    assert diagnosis.state == diagnosis.findings[0].cause
    return diagnosis.findings[0]


def by_hand(forward, *, steps=40, scale=65536.0, lr=0.1, clip_before_unscale=None, growth_interval=2000):
    """A small FP16 loop whose gradients can be spoilt: forward(model, step) gives the loss."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=growth_interval)
    for number in range(steps):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = forward(model, number)
        scaler.scale(loss).backward()
        if clip_before_unscale is None:
            scaler.unscale_(optimizer)
            norm = nn.utils.get_total_norm([p.grad for p in model.parameters()])
        else:
            norm = nn.utils.clip_grad_norm_(model.parameters(), clip_before_unscale)
        used = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        yield step(number, loss=loss.item(), grad_norm=norm.item(), scale=used, skipped=scaler.get_scale() < used)


def ordinary(model, number):
    x = torch.randn(16, 8, generator=torch.Generator().manual_seed(number))
    return F.cross_entropy(model(x).float(), (x[:, :4]).argmax(1))


# Healthy runs


@pytest.mark.parametrize(
    "name", [rung.name for rung in LADDER if rung.name not in ("tf32", "fp16_no_scaler", "compiled")]
)
def test_the_log_of_every_loop_that_learns_is_healthy(name):
    diagnosis = diagnose(trained(name))
    assert diagnosis.healthy, str(diagnosis)
    assert diagnosis.state in ("healthy", "settled")
    assert "40 steps, loss 2.3" in diagnosis.notes[0]


@pytest.mark.parametrize("weight", [1.0, 2.0**-20])
def test_a_scaler_that_begins_far_too_high_is_calibrating_and_then_settled(weight):
    steps = trained("fp16", init_scale=2.0**45, loss_weight=weight, steps=50)
    first_good = next(one.step for one in steps if not one.skipped)
    assert first_good >= 5
    assert {diagnose(steps[:end]).state for end in range(1, first_good + 1)} == {"calibrating"}
    diagnosis = diagnose(steps)
    assert diagnosis.healthy and diagnosis.state == "settled"
    assert f"{first_good} of them before the first good step" in diagnosis.notes[0]


def test_a_skip_now_and_then_after_growth_is_healthy():
    steps = [step(k, scale=65536.0 * (2 if k % 200 == 199 else 1), skipped=k % 200 == 199) for k in range(1000)]
    steps = [replace(one, loss=2.0 - one.step / 1000) for one in steps]
    assert diagnose(steps).state == "settled"


def test_a_run_of_one_step_is_no_fault():
    assert diagnose([step(0)]).state == "settled"
    assert diagnose([step(0, scale=None)]).state == "healthy"
    assert diagnose([step(0, skipped=True, grad_norm=math.inf)]).state == "calibrating"


# Broken runs


def test_fp16_without_a_scaler_is_underflowing():
    found = only(trained("fp16_no_scaler"))
    assert found.cause == "underflowing"
    assert "exactly 0 in 40 of 40 steps" in found.what and "no GradScaler" in found.why and "GradScaler" in found.cure


def test_broken_data_make_the_loss_nan_and_the_scale_fall():
    train = digits()
    images = train.train_images.clone()
    images[:, 0, 0, 0] = torch.where(torch.arange(len(images)) % 2 == 0, math.nan, 0.0)
    data = Dataset(images, train.train_labels, train.test_images, train.test_labels)
    found = only(trained("fp16", dataset=data, lr=0.01))
    assert found.cause == "forward_nan"
    assert found.evidence["step"] == 0 and found.evidence["steps"] == 40
    assert f"from 65536 to {65536 / 2**39:g}" in found.what and "not scaled" in found.why


def test_weights_that_break_in_the_middle_are_told_from_the_forward_pass():
    def breaks(model, number):
        if number == 20:
            with torch.no_grad():
                model[0].weight[0, 0] = math.nan
        return ordinary(model, number)

    found = only(by_hand(breaks))
    assert (found.cause, found.where) == ("forward_nan", "steps 20 to 39")
    assert "20 of them were skipped" in found.what and found.evidence["scales"][1] < 1


def test_an_inf_gradient_without_a_scaler_poisons_the_weights():
    steps = trained("fp32", steps=10)
    steps[4] = replace(steps[4], grad_norm=math.inf)
    steps[5:] = [replace(one, loss=math.nan, grad_norm=math.nan) for one in steps[5:]]
    found = only(steps)
    assert (found.cause, found.where) == ("weights_poisoned", "step 4")
    assert "5 of the 5 steps after it" in found.what and "last good checkpoint" in found.cure


def test_a_gradient_that_was_spoilt_after_unscale_is_applied_and_found():
    steps = [step(k) for k in range(5)] + [step(5, grad_norm=math.nan)]
    steps += [
        step(k, loss=math.nan, grad_norm=math.nan, skipped=True, scale=65536 / 2 ** (k - 6)) for k in range(6, 12)
    ]
    found = only(steps)
    assert (found.cause, found.where) == ("weights_poisoned", "step 5") and "unscale_" in found.why


def test_a_backward_that_is_nan_at_every_scale_is_collapsing():
    def distance(model, number):
        x = torch.ones(4, 8)
        near = (model(x) - model(x).detach()).float().square().sum(-1).sqrt().mean()
        return ordinary(model, number) + (near if number >= 10 else 0)

    found = only(by_hand(distance))
    assert (found.cause, found.where) == ("collapsing", "steps 10 to 39")
    assert "last 30 steps were all skipped" in found.what and "no step changes the weights" in found.why
    from_the_start = only(by_hand(lambda model, number: distance(model, 10)))
    assert (from_the_start.cause, from_the_start.where) == ("collapsing", "steps 0 to 39")


def test_a_loss_so_large_that_the_scale_goes_below_1_is_stuck_there():
    found = only(by_hand(lambda model, number: 1e7 * ordinary(model, number), lr=1e-10, steps=60))
    assert found.cause == "stuck_below_1" and found.evidence["scale"] < 1
    assert "beyond 65504" in found.why


def test_a_batch_that_is_nan_now_and_then_is_named_with_its_steps():
    found = only(by_hand(lambda model, number: ordinary(model, number) * (math.nan if number in (7, 23) else 1.0)))
    assert (found.cause, found.where) == ("nan_batches", "steps 7, 23")
    assert found.evidence["steps"] == [7, 23] and "2 of 40 steps" in found.what


def test_a_growth_interval_that_is_too_short_skips_often():
    found = only(by_hand(ordinary, growth_interval=3, steps=120))
    assert found.cause == "skipping_often"
    assert found.evidence["after_growth"] >= 0.5 * found.evidence["skips"]
    assert "growth_interval" in found.cure


def test_gradients_that_spike_skip_often_for_another_reason():
    spiky = lambda model, number: ordinary(model, number) * (1e9 if number % 4 == 3 else 1.0)  # noqa: E731
    findings = diagnose(by_hand(spiky, steps=62, scale=256.0, lr=1e-3)).findings
    found = next(finding for finding in findings if finding.cause == "skipping_often")
    assert found.evidence["after_growth"] == 0
    assert "spike" in found.why


def test_a_scale_that_is_never_updated_is_found_after_two_intervals():
    steps = [step(k, loss=2 - k / 4000) for k in range(4002)]
    assert only(steps).cause == "scale_never_grows"
    assert diagnose(steps[:3999]).healthy
    assert diagnose(steps, growth_interval=10000).healthy


def test_a_norm_before_unscale_moves_with_the_scale():
    found = only(by_hand(ordinary, clip_before_unscale=1e9, growth_interval=12, scale=4.0, lr=1e-3, steps=80))
    assert found.cause == "norm_is_scaled" and "unscale_" in found.cure
    assert diagnose(by_hand(ordinary, growth_interval=12, scale=4.0, lr=1e-3, steps=80)).healthy


def test_a_learning_rate_that_is_too_high_diverges():
    x, y = torch.randn(64, 8, generator=torch.Generator().manual_seed(0)), torch.zeros(64, 4)
    found = only(by_hand(lambda model, number: F.mse_loss(model(x).float(), y + 1), lr=3.0, steps=12, scale=1.0))
    assert found.cause == "diverging" and "were skipped" in found.what
    rising = [step(k, scale=None, loss=2.0 - 0.05 * k if k < 20 else 1.0 + 0.2 * (k - 20)) for k in range(60)]
    found = only(rising)
    assert (found.cause, found.where) == ("diverging", "steps 20 to 59")
    assert "lowest (step 20)" in found.what and "learning rate" in found.cure


def test_a_loss_that_becomes_inf_diverges():
    steps = [step(k, scale=None, loss=2.0**k if k < 30 else math.inf) for k in range(32)]
    assert only(steps).cause == "diverging"


def test_a_clip_that_shortens_every_step_is_named_if_max_norm_is_told():
    steps = [step(k, grad_norm=50.0 + k, loss=2.0 - k / 100) for k in range(100)]
    assert diagnose(steps).healthy
    found = only(steps, max_norm=1.0)
    assert found.cause == "clipping_everything" and "100 of 100 steps" in found.what
    assert diagnose(steps, max_norm=60.0).healthy


def test_a_loss_that_does_not_move_is_flat():
    found = only([step(k, loss=2.3026 + 1e-4 * (k % 3)) for k in range(200)])
    assert found.cause == "flat" and "autocast" in found.cure
    assert diagnose([step(k, loss=2.3026) for k in range(50)]).healthy  # too short to say


def test_a_schedule_that_goes_on_after_skipped_steps_is_noted():
    steps = [step(k, skipped=k < 3, scale=65536 / 2 ** min(k, 3), lr=0.1 - 0.001 * k) for k in range(30)]
    assert any("ahead of the weights" in note for note in diagnose(steps).notes)
    right = [replace(one, lr=0.1 - 0.001 * max(0, one.step - 3)) for one in steps]
    assert not any("ahead of the weights" in note for note in diagnose(right).notes)


# Laws


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.builds(
            StepReport,
            step=st.integers(0, 1000),
            loss=st.floats(),
            grad_norm=st.floats(min_value=0) | st.just(math.nan),
            scale=st.floats(min_value=1e-6, max_value=1e9),
            skipped=st.booleans(),
            samples=st.just(8),
            seconds=st.just(0.1),
            peak_bytes=st.none(),
        ),
        min_size=1,
        max_size=40,
    )
)
def test_whatever_a_log_holds_gets_a_state_and_strict_json(steps):
    diagnosis = diagnose(steps)
    assert diagnosis.state and diagnosis.to_json()
    assert diagnosis.healthy == (diagnosis.state in ("settled", "calibrating", "healthy"))


@settings(max_examples=60, deadline=None)
@given(skips=st.integers(0, 16), good=st.integers(1, 100), rate=st.floats(0.90, 0.999))
def test_a_run_that_calibrates_and_learns_never_alarms(skips, good, rate):
    total = skips + good
    steps = [
        step(k, skipped=k < skips, scale=2.0 ** (16 - min(k, skips)), grad_norm=math.inf if k < skips else 1.0,
             loss=2.3 * rate ** max(0, k - skips))
        for k in range(total)
    ]  # fmt: skip
    assert all(diagnose(steps[: end + 1]).healthy for end in range(total))


# Files


def test_the_last_line_of_a_killed_run_is_left_out_and_said(tmp_path):
    log = tmp_path / "run.jsonl"
    list(write_reports([step(k, loss=2 - k / 10) for k in range(5)], log))
    text = log.read_text()
    log.write_text(text[:-40])
    assert len(read_log(log)[0]) == 4
    diagnosis = diagnose_log(log)
    assert diagnosis.healthy and diagnosis.subject == str(log)
    assert any("cut off" in note and "killed" in note for note in diagnosis.notes)
    log.write_text(text)
    assert not any("cut off" in note for note in diagnose_log(log).notes)


def test_a_log_that_is_none_is_an_error_that_says_what_to_do(tmp_path):
    log = tmp_path / "run.jsonl"
    with pytest.raises(ReportError, match="cannot be read"):
        diagnose_log(log)
    log.write_text("")
    with pytest.raises(ReportError, match="holds no step"):
        diagnose_log(log)
    log.write_text("loss 2.3\n" + step(0).to_json() + "\n")
    with pytest.raises(ReportError, match="line 1"):
        diagnose_log(log)
    log.write_text(step(0).to_json() + "\n" + step(1).to_json()[:30] + "\n" + step(2).to_json() + "\n")
    with pytest.raises(ReportError, match="line 2"):
        diagnose_log(log)
    with pytest.raises(ReportError, match="no step record"):
        diagnose([])
