"""Every room under exercises/: the solution and all other right answers earn full marks, the released notebook none, every
mistake is caught and named, by a margin that no rounding bridges.

The seeds are fixed, so that the suite gives the same answer twice; tests/bench/many_secrets.py tries any number of new ones."""

import pytest

from autograder.margins import margins
from autograder.reference import compute
from autograder.release import prove
from autograder.room import ROOMS, Room

SECRET = b"the seeds of test_rooms"
ROOM_PATHS = sorted(path.parent for path in ROOMS.glob("*/*.ipynb") if path.stem == path.parent.name)


def test_there_are_rooms():
    assert ROOM_PATHS


@pytest.fixture(scope="module", params=ROOM_PATHS, ids=lambda path: path.name)
def proven(request):
    room = Room(request.param)
    reference = compute(room, SECRET)
    return room, reference, prove(reference)


def test_right_answers_pass_and_mistakes_are_caught_and_named(proven):
    room, _, proofs = proven
    failures = [proof.failure for proof in proofs if proof.failure]
    assert not failures, f"{room.name}:\n" + "\n".join(failures)


def test_no_mistake_is_nearer_to_right_than_four_times_the_tolerance(proven, report):
    room, reference, proofs = proven
    found = margins(reference, proofs)
    assert [margin.exercise for margin in found] == list(room.exercises)
    report(*(f"{room.name} {margin}" for margin in found))
    for margin in found:
        assert margin.right_at <= 0.25 and margin.mistake_at >= 4.0, str(margin)


def test_every_exercise_is_proven_from_all_sides(proven, report):
    room, _, proofs = proven
    for name in room.exercises:
        of_it = [proof.kind for proof in proofs if proof.exercise == name]
        counts = {kind: of_it.count(kind) for kind in ("solution", "released", "mistake", "also_right")}
        slugs = {mistake.slug for mistake in room.mistakes[name]} - {"wrong_result", "raises"}
        report(
            f"{room.name} {name}: {counts['mistake']} mistakes of {len(slugs)} kinds, "
            f"{counts['also_right']} other right answers"
        )
        assert counts["solution"] == counts["released"] == 1 and counts["also_right"] >= 2 and len(slugs) >= 2


def test_every_part_is_lost_by_some_mistake(proven):
    room, _, proofs = proven
    for name, exercise in room.exercises.items():
        for part in exercise.parts:
            assert any(
                proof.kind == "mistake" and not proof.result.earned[part] for proof in proofs if proof.exercise == name
            ), f"no mistake loses {name}-{part}"


def test_every_failing_message_names_the_input_and_what_came_of_it(proven):
    _, _, proofs = proven
    for proof in proofs:
        if proof.kind == "mistake":
            words = proof.result.message
            assert "Given " in words and ("expected " in words or "your code raised" in words), (proof.name, words)


def test_messages_do_not_hand_out_the_answer(proven):
    room, _, _ = proven
    for name, mistakes in room.mistakes.items():
        for mistake in mistakes:
            assert "```" not in mistake.message and "\n" not in mistake.message and 30 < len(mistake.message) < 420, (
                name,
                mistake.name,
                len(mistake.message),
            )


ASSIGNMENT_3 = {  # EXERCISES.md's contract: points, and the kinds that have to be told apart
    "choose_init_scale": (3, "constant not_power_of_two uses_norm sign_ignored too_small too_large zero_gradients"),
    "underflow_report": (2, "counts_zeros flushes_subnormals unscaled per_tensor_mean"),
    "simulate_scale": (2, "growth_off_by_one tracker_not_reset no_backoff before_update"),
    "LossScaler": (
        4,
        "steps_on_inf double_unscale checks_first_param_only misses_nan no_growth no_backoff not_unscaled",
    ),
    "clipped_step": (
        3,
        "clip_before_unscale unscale_after_clip double_step no_update returns_scaled_norm clip_by_value "
        "no_clip loss_not_scaled",
    ),
    "step_and_schedule": (2, "always_schedules growth_taken_for_skip no_update"),
    "two_optimizers_step": (3, "update_between one_loss_unscaled update_missing skips_both"),
}


def test_assignment_3_keeps_its_contract(room):
    assert {name: exercise.points for name, exercise in room.exercises.items()} == {
        name: points for name, (points, _) in ASSIGNMENT_3.items()
    }
    for name, (_, kinds) in ASSIGNMENT_3.items():
        assert set(kinds.split()) <= {mistake.slug for mistake in room.mistakes[name]}, name


ASSIGNMENT_2 = {  # the contract names no kinds for PREDICTED
    "PREDICTED": (3, ""),
    "amp_forward_backward": (2, "no_autocast loss_outside_autocast model_converted no_backward not_detached"),
    "attention_fp32_scores": (3, "forgot_float still_autocast no_scaling wrong_dtype"),
    "evaluate": (3, "mean_of_means train_mode mode_not_restored no_autocast builds_graph"),
    "MatMul": (3, "no_custom_fwd no_custom_bwd forces_fp32 wrong_gradient"),
    "train_bf16": (2, "one_region uses_scaler no_zero_grad no_autocast"),
}


def test_assignment_2_keeps_its_contract():
    room = Room(ROOMS / "02_autocast")
    assert {name: exercise.points for name, exercise in room.exercises.items()} == {
        name: points for name, (points, _) in ASSIGNMENT_2.items()
    }
    for name, (_, kinds) in ASSIGNMENT_2.items():
        assert set(kinds.split()) <= {mistake.slug for mistake in room.mistakes[name]}, name


ASSIGNMENT_4 = {
    "train": (
        6,
        "not_divided divides_by_index tail_dropped tail_divided_by_full updates_every_micro_batch "
        "unscales_first_micro_batch clip_before_unscale schedules_on_skip no_zero_grad one_region",
    ),
    "token_mean_step": (3, "mean_of_means counts_ignored not_divided"),
    "checkpoint": (
        4,
        "scaler_missing growth_tracker_missing scheduler_missing rng_missing optimizer_missing not_atomic unsafe_load "
        "wrong_step",
    ),
    "ema_step": (2, "updates_on_skip decay_swapped buffers_ignored low_precision"),
    "measure": (2, "no_synchronize counts_warmup mean_not_median"),
}


def test_assignment_4_keeps_its_contract():
    room = Room(ROOMS / "04_training_loop")
    assert {name: exercise.points for name, exercise in room.exercises.items()} == {
        name: points for name, (points, _) in ASSIGNMENT_4.items()
    }
    for name, (_, kinds) in ASSIGNMENT_4.items():
        assert set(kinds.split()) <= {mistake.slug for mistake in room.mistakes[name]}, name


ASSIGNMENT_1 = {
    "decode_half": (2, "flushes_subnormals subnormal_exponent no_inf_nan sign_ignored wrong_result"),
    "fp16_fate": (2, "flushes_subnormals overflow_at_65504 tie_to_even sign_ignored"),
    "count_lost_updates": (2, "sums_in_fp32 counts_zero_updates only_underflow"),
    "fp16_mean": (2, "fp16_sum_overflow wrong_dtype"),
    "rms_norm": (3, "square_overflow eps_underflow wrong_dtype not_rms"),
}


def test_assignment_1_keeps_its_contract():
    room = Room(ROOMS / "01_fp16_range")
    assert {name: exercise.points for name, exercise in room.exercises.items()} == {
        name: points for name, (points, _) in ASSIGNMENT_1.items()
    }
    for name, (_, kinds) in ASSIGNMENT_1.items():
        assert set(kinds.split()) <= {mistake.slug for mistake in room.mistakes[name]}, name
