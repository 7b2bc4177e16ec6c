"""Verdicts: parts and points, and which mistake is named when none fits exactly."""

import pytest

from autograder.errors import EvidenceError
from autograder.probes import Exercise
from autograder.verdict import Explanation, judge, read_records, without_evidence

exercise = Exercise("f", parts={"main": 2, "extra": 1}, keys={"returned": "extra"})


@exercise.probe(draws=2)
def twice(answer, p):
    """two calls"""


@exercise.probe("extra")
def border(answer, p):
    """a border"""


def records(values, calls=(), error=None):
    """Records of the three draws from a list of three dicts of evidence."""
    names = [("twice", 0), ("twice", 1), ("border", 0)]
    return [
        {
            "probe": probe,
            "draw": draw,
            "given": f"input {i}",
            "seen": dict(seen),
            "calls": list(calls),
            "error": error,
        }
        for i, ((probe, draw), seen) in enumerate(zip(names, values, strict=True))
    ]


RIGHT = records([{"a": 1.0, "returned": 5.0}, {"a": 2.0, "returned": 6.0}, {"b": 3.0}], calls=["scale", "step"])


def mistake(slug, values, **kwargs):
    return Explanation.of(exercise, slug, f"You made the mistake {slug}.", RIGHT, records(values, **kwargs))


def judged(values, mistakes=(), **kwargs):
    return judge(exercise, RIGHT, records(values, **kwargs), list(mistakes))


def test_the_right_evidence_earns_everything():
    result = judged([{"a": 1.0, "returned": 5.0}, {"a": 2.0, "returned": 6.0}, {"b": 3.0}])
    assert result.passed and result.score == 3 and result.diagnosis is None and result.message == ""


def test_a_wrong_extra_costs_the_extra_only():
    result = judged([{"a": 1.0, "returned": 0.0}, {"a": 2.0, "returned": 6.0}, {"b": 3.0}])
    assert result.earned == {"main": 2, "extra": 0} and not result.passed and result.diagnosis == "wrong_result"


def test_a_wrong_core_costs_everything():
    result = judged([{"a": 9.0, "returned": 5.0}, {"a": 2.0, "returned": 6.0}, {"b": 3.0}])
    assert result.score == 0 and "Given input 0: a: expected 1, got 9." in result.message


@pytest.mark.parametrize(("right", "score"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 3)])
def test_where_parts_are_steps_of_a_count_each_third_that_is_right_earns_its_third(right, score):
    counted = Exercise("g", parts={"one": 1, "two": 1, "three": 1}, counted=True)
    counted.probe()(twice)
    record = {"probe": "twice", "draw": 0, "given": "", "calls": [], "error": None}
    expected = [{**record, "seen": {str(i): "yes" for i in range(5)}}]
    for shift in range(5):  # wherever it is
        seen = {str((i + shift) % 5): "yes" if i < right else "no" for i in range(5)}
        assert judge(counted, expected, [{**record, "seen": seen}], []).score == score


def test_the_student_is_shown_the_failure_of_the_main_part_first():
    ordered = records([{"returned": 5.0, "a": 1.0}, {"a": 2.0, "returned": 6.0}, {"b": 3.0}])
    wrong = records([{"returned": 0.0, "a": 9.0}, {"a": 2.0, "returned": 6.0}, {"b": 3.0}])
    assert "a: expected 1, got 9." in judge(exercise, ordered, wrong, []).message


def test_an_exact_explanation_is_named_in_its_own_words():
    wrong = [{"a": 9.0, "returned": 5.0}, {"a": 9.0, "returned": 6.0}, {"b": 3.0}]
    result = judged(
        wrong,
        [mistake("near", [{"a": 9.0, "returned": 5.0}, *wrong[:0], {"a": 2.0}, {"b": 3.0}]), mistake("exact", wrong)],
    )
    assert result.diagnosis == "exact" and result.message.startswith("You made the mistake exact.")


def test_of_two_exact_explanations_the_order_of_calls_decides():
    wrong = [{"a": 9.0, "returned": 5.0}, {"a": 9.0, "returned": 6.0}, {"b": 3.0}]
    both = [
        mistake("before", wrong, calls=["clip", "step"]),
        mistake("after", wrong, calls=["clip", "unscale_", "step"]),
    ]
    assert judged(wrong, both, calls=["clip", "unscale_", "step"]).diagnosis == "after"
    assert judged(wrong, both, calls=["clip", "step"]).diagnosis == "before"


def test_the_mistake_that_explains_most_is_named_and_half_is_not_most():
    wrong = [{"a": 9.0, "returned": 0.0}, {"a": 9.0, "returned": 0.0}, {"b": 7.0}]
    most = mistake("most", [{"a": 9.0, "returned": 0.0}, {"a": 9.0, "returned": 0.0}, {"b": 8.0}])
    half = mistake("half", [{"a": 9.0, "returned": 5.0}, {"a": 9.0, "returned": 6.0}, {"b": 3.0}])
    assert judged(wrong, [half, most]).diagnosis == "most"
    assert judged(wrong, [half]).diagnosis == "wrong_result"


def test_the_same_calls_name_a_mistake_that_explains_something_and_no_other():
    wrong = [{"a": 9.0, "returned": 0.0}, {"a": 9.0, "returned": 0.0}, {"b": 7.0}]
    some = mistake("some", [{"a": 9.0, "returned": 1.0}, {"a": 8.0, "returned": 1.0}, {"b": 3.0}], calls=["step"])
    nothing = mistake("nothing", [{"a": 8.0, "returned": 1.0}, {"a": 8.0, "returned": 1.0}, {"b": 3.0}], calls=["step"])
    assert judged(wrong, [nothing, some], calls=["step"]).diagnosis == "some"
    assert judged(wrong, [nothing], calls=["step"]).diagnosis == "wrong_result"


def test_an_error_is_evidence_of_the_mistake_that_raises_the_same_at_the_same_place():
    error = {"type": "RuntimeError", "message": "step() has already been called", "line": 3}
    wrong = [{"a": 1.0}, {"a": 2.0}, {}]
    known = mistake("no_update", wrong, error={**error, "line": 9})
    assert judged(wrong, [known], error=error).diagnosis == "no_update"
    elsewhere = judged([{}, {}, {}], [known], error=error)
    assert elsewhere.diagnosis == "raises"
    assert "your code raised RuntimeError: step() has already been called (line 3 of your cell)" in elsewhere.message


def test_evidence_that_is_not_there_without_an_error_is_said_and_names_the_mistake_that_lacks_it_too():
    values = [{"returned": 5.0}, {"returned": 6.0}, {"b": 3.0}]
    result = judged(values)
    assert result.diagnosis == "wrong_result" and result.score == 0, "nothing was raised"
    assert "a: expected 1, and there is nothing." in result.message
    assert judged(values, [mistake("lacks_a", values)]).diagnosis == "lacks_a"
    raised = mistake("raises_there", values, error={"type": "KeyError", "message": "a", "line": 1})
    assert judged(values, [raised]).diagnosis == "wrong_result"


def test_not_implemented_everywhere_is_not_attempted():
    error = {"type": "NotImplementedError", "message": "", "line": 2}
    assert judged([{}, {}, {}], error=error).diagnosis == "not_attempted"


def test_a_symptom_names_what_no_known_answer_shows():
    special = Exercise("f", parts={"main": 1})
    special.probe(draws=1)(twice)
    one = [RIGHT[0]]
    special.symptom("too_large")(lambda failed: all(c.got > c.expected for c in failed))
    shown = [{**RIGHT[0], "seen": {"a": 50.0, "returned": 50.0}}]
    known = Explanation.of(special, "too_large", "Too large.", one, shown)
    got = [{**RIGHT[0], "seen": {"a": 7.0, "returned": 7.0}}]
    assert judge(special, one, got, [known]).diagnosis == "too_large"
    assert judge(special, one, got, []).diagnosis == "wrong_result"


@pytest.mark.parametrize("slug", ["not_attempted", "timeout", "raises", "wrong_result"])
def test_without_evidence_there_are_no_points_and_a_word(slug):
    result = without_evidence(exercise, slug, "Detail.")
    assert (
        result.score == 0 and result.max_score == 3 and result.diagnosis == slug and result.message.endswith("Detail.")
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda r: r.pop(),
        lambda r: r[0].pop("seen"),
        lambda r: r[0].update(draw=1),
        lambda r: r[0].update(calls=[1]),
        lambda r: r[0].update(error={"type": 1}),
        lambda r: r[0]["seen"].update(a={"$x": 1}),
        lambda r: r.append(r[0]),
    ],
)
def test_records_that_a_runner_would_not_write_are_refused(spoil):
    spoilt = records([{"a": 1.0}, {}, {}])
    spoil(spoilt)
    with pytest.raises(EvidenceError):
        read_records(spoilt, exercise)
