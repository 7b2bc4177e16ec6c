"""Probes: seeds that nobody guesses, state that is put back, errors and calls that are written down."""

import pytest
import torch

from autograder import trace
from autograder.errors import RoomError
from autograder.probes import Exercise, leave_no_state, load_checks, run_probes, seed_of, seeds


def exercise_of(probe, **kwargs):
    exercise = Exercise("f", parts={"value": 1}, **kwargs)
    exercise.probe()(probe)
    return exercise


def only_record(probe, answer):
    exercise = exercise_of(probe)
    return run_probes(exercise, answer, seeds(exercise, "a", b"s"), lambda error: None)[0]


def test_seeds_depend_on_everything_and_repeat():
    names = [(s, a, e, p, d) for s in (b"x", b"y") for a in "ab" for e in "ef" for p in "pq" for d in (0, 1)]
    drawn = [seed_of(*name) for name in names]
    assert len(set(drawn)) == len(names) and drawn == [seed_of(*name) for name in names]
    assert all(0 <= seed < 2**63 for seed in drawn)


def test_a_probe_draws_the_same_input_from_the_same_seed():
    def draw(answer, p):
        p.see("numbers", [p.random.random(), p.normal(3)])

    first, second = only_record(draw, None), only_record(draw, None)
    assert first["seen"]["numbers"][0] == second["seen"]["numbers"][0]
    assert torch.equal(first["seen"]["numbers"][1], second["seen"]["numbers"][1])


def test_an_error_is_evidence_and_what_was_seen_before_it_stays():
    def probe(answer, p):
        p.see("before", 1)
        answer()
        p.see("after", 2)

    def answer():
        raise ValueError("no\nsecond line")

    record = only_record(probe, answer)
    assert record["seen"] == {"before": 1}
    assert record["error"] == {"type": "ValueError", "message": "no", "line": None}


def test_exit_is_an_error_and_no_way_out():
    def answer():
        raise SystemExit(0)

    assert only_record(lambda answer, p: answer(), answer)["error"]["type"] == "SystemExit"


def test_state_that_an_answer_leaves_behind_does_not_reach_the_next_probe():
    torch.autocast("cpu", torch.float16).__enter__()
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.float64)
    leave_no_state()
    assert not torch.is_autocast_enabled("cpu") and torch.is_grad_enabled()
    assert torch.get_autocast_dtype("cpu") is torch.bfloat16 and torch.get_default_dtype() is torch.float32
    with torch.autocast("cpu", torch.float16):
        weight = torch.ones(2, 2)
        assert (weight @ weight).dtype is torch.float16
    assert not torch.is_autocast_enabled("cpu")


def test_warnings_inside_a_probe_are_silent(capsys):
    def probe(answer, p):
        import warnings

        warnings.warn("lr_scheduler", UserWarning, stacklevel=1)

    assert only_record(probe, None)["error"] is None and capsys.readouterr().err == ""


def test_only_outermost_calls_are_recorded():
    def probe(answer, p):
        weight = torch.nn.Parameter(torch.ones(2))
        optimizer = trace.watch(torch.optim.SGD([weight], lr=0.1))
        answer(trace.GradScaler(), optimizer, (weight * 2).sum())

    def answer(scaler, optimizer, loss):
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.step()

    assert only_record(probe, answer)["calls"] == ["scale", "backward", "step", "update", "optimizer.step"]
    assert torch.Tensor.backward.__module__ == "torch._tensor" and not hasattr(torch.Tensor.backward, "__wrapped__")


def test_a_part_that_does_not_exist_is_named():
    with pytest.raises(RoomError, match="no part 'norm', only value"):
        Exercise("f", parts={"value": 1}).probe("norm")


@pytest.mark.parametrize(
    "source, said", [("x = ", "SyntaxError"), ("x = 1", "declares no Exercise"), ("1 / 0", "division")]
)
def test_a_broken_checks_file_is_said_so(source, said):
    with pytest.raises(RoomError, match=said):
        load_checks(source, "a")


def test_an_error_is_written_down_without_the_colours_of_a_terminal():
    def probe(answer, p):
        raise ValueError("\x1b[1;31mno\x1b[0m such \x1b[4mfile\x1b[0m\nmore")

    assert only_record(probe, None)["error"]["message"] == "no such file"
