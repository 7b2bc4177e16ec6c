"""From evidence to a verdict: what differs from the solution's evidence, which mistake explains it, what the student is told.

Runs in a process that has never run an answer. It reads data only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from autograder.errors import EvidenceError
from autograder.evidence import Other, clean, decode, difference, show
from autograder.probes import Exercise

MISSING = Other("nothing: it was not reached")
# A mistake that explains less than this share of what went wrong is not named.
EXPLAINS_MOST = 0.5

SPECIAL = {
    "not_attempted": "This answer cell is as it was released. Write your answer in it, then run the check again.",
    "timeout": "Your answer did not come back within its time. Look for a loop whose condition never becomes false, or for "
    "work that grows with the value of the scale instead of the number of steps.",
    "wrong_result": "The result is not what was asked for, and it is none of the mistakes that are known here. Read the "
    "signature and the docstring again, then try the input below by hand.",
    "raises": "",  # the error itself is what there is to say
}


@dataclass(frozen=True)
class Comparison:
    """One piece of evidence of one draw of one probe, beside what the solution showed there. `words` is None where equal;
    `error` is what ended the draw, if an error did, and then the evidence that was not reached is MISSING."""

    probe: str
    draw: int
    given: str
    key: str
    part: str
    expected: object
    got: object
    words: str | None
    error: dict | None = None

    @property
    def was_raised(self) -> bool:
        """Whether it is not there because of an error."""
        return self.got is MISSING and self.error is not None


@dataclass
class Explanation:
    """A known mistake and its evidence: records as probes.run_probes makes them, decoded, and what is wrong in them."""

    slug: str
    message: str
    records: list[dict]
    faults: set[tuple[str, int, str]]

    @classmethod
    def of(cls, exercise: Exercise, slug: str, message: str, expected: list[dict], records: list[dict]) -> Explanation:
        return cls(slug, message, records, faults(compare(exercise, expected, records)))


@dataclass
class Result:
    """What an exercise earned, part by part, and why."""

    exercise: str
    parts: dict[str, int]
    earned: dict[str, int]
    diagnosis: str | None = None
    message: str = ""
    checks: int = 0
    failures: list[Comparison] = field(default_factory=list, repr=False)

    @property
    def score(self) -> float:
        return float(sum(self.earned.values()))

    @property
    def max_score(self) -> float:
        return float(sum(self.parts.values()))

    @property
    def right(self) -> bool:
        """Whether there is evidence, and to the last piece what the solution shows."""
        return self.diagnosis is None

    @property
    def passed(self) -> bool:
        return self.earned == self.parts

    def to_json(self) -> dict:
        return {
            "score": self.score,
            "max_score": self.max_score,
            "passed": self.passed,
            "diagnosis": self.diagnosis,
            "message": self.message,
            "parts": {part: float(points) for part, points in self.earned.items()},
        }


def read_records(records: object, exercise: Exercise) -> list[dict]:
    """Records as they came out of a box, checked and decoded. EvidenceError where they are not what a runner writes."""
    wanted = [(probe.name, draw) for probe in exercise.probes.values() for draw in range(probe.draws)]
    if not isinstance(records, list) or len(records) != len(wanted):
        raise EvidenceError(f"evidence for {exercise.name} has not one record for each draw")
    read = []
    for record, (probe, draw) in zip(records, wanted, strict=True):
        well_formed = (
            isinstance(record, dict)
            and record.get("probe") == probe
            and record.get("draw") == draw
            and isinstance(record.get("given"), str)
            and isinstance(record.get("seen"), dict)
            and isinstance(record.get("calls"), list)
            and all(isinstance(call, str) for call in record["calls"][:200])
        )
        if not well_formed:
            raise EvidenceError(f"evidence for {exercise.name} holds a malformed record for {probe}")
        read.append(
            {
                "probe": probe,
                "draw": draw,
                "given": clean(record["given"]),
                "seen": {clean(str(key), 80): decode(value) for key, value in record["seen"].items()},
                "calls": [clean(call, 40) for call in record["calls"][:200]],
                "error": read_error(record.get("error")),
            }
        )
    return read


def read_error(error: object) -> dict | None:
    if error is None:
        return None
    if (
        not isinstance(error, dict)
        or not isinstance(error.get("type"), str)
        or not isinstance(error.get("message"), str)
    ):
        raise EvidenceError("evidence holds a malformed error")
    line = error.get("line")
    return {
        "type": clean(error["type"], 80),
        "message": clean(error["message"], 400),
        "line": line if type(line) is int else None,
    }


def compare(exercise: Exercise, expected: list[dict], got: list[dict]) -> list[Comparison]:
    """Every piece of expected evidence beside what was got."""
    comparisons = []
    for wanted, record in zip(expected, got, strict=True):
        probe = exercise.probes[wanted["probe"]]
        for key, value in wanted["seen"].items():
            seen = record["seen"].get(key, MISSING)
            words = difference(value, seen, exercise.ulps)
            if seen is MISSING and record["error"] is None:
                words = f"expected {show(value)}, and there is nothing"
            comparisons.append(
                Comparison(
                    probe.name,
                    wanted["draw"],
                    wanted["given"],
                    key,
                    exercise.part_of(probe, key),
                    value,
                    seen,
                    words,
                    record["error"],
                )
            )
    return comparisons


def judge(exercise: Exercise, expected: list[dict], got: list[dict], mistakes: list[Explanation]) -> Result:
    """The verdict on an answer that could be probed."""
    comparisons = compare(exercise, expected, got)
    failed = [comparison for comparison in comparisons if comparison.words]
    wrong_parts = {comparison.part for comparison in failed}
    if exercise.counted:
        reached = len(exercise.parts) * (len(comparisons) - len(failed))
        wrong_parts = {part for k, part in enumerate(exercise.parts, 1) if reached < k * len(comparisons)}
    core_right = exercise.core not in wrong_parts
    earned = {part: points if core_right and part not in wrong_parts else 0 for part, points in exercise.parts.items()}
    result = Result(exercise.name, dict(exercise.parts), earned, checks=len(comparisons), failures=failed)
    if all(record["error"] and record["error"]["type"] == "NotImplementedError" for record in got):
        return without_evidence(exercise, "not_attempted")
    if failed:
        result.diagnosis, words = diagnose(exercise, expected, got, failed, mistakes)
        result.message = _paragraphs(words, evidence_in_words(exercise, _telling(exercise, failed), got))
    return result


def without_evidence(exercise: Exercise, diagnosis: str, detail: str = "") -> Result:
    """The verdict on an answer that could not be probed: not attempted, no such name, out of time, process gone."""
    nothing = dict.fromkeys(exercise.parts, 0)
    return Result(exercise.name, dict(exercise.parts), nothing, diagnosis, _paragraphs(SPECIAL[diagnosis], detail))


def _paragraphs(*paragraphs: str) -> str:
    return "\n\n".join(filter(None, paragraphs))


def error_in_words(error: dict) -> str:
    place = f" (line {error['line']} of your cell)" if error["line"] else ""
    return f"{error['type']}: {error['message']}{place}"


def evidence_in_words(exercise: Exercise, comparison: Comparison, got: list[dict]) -> str:
    """What was given and what came of it, for one failed comparison."""
    record = next(r for r in got if (r["probe"], r["draw"]) == (comparison.probe, comparison.draw))
    given = comparison.given or exercise.probes[comparison.probe].about
    if comparison.was_raised:
        return f"Given {given}: your code raised {error_in_words(record['error'])}."
    return f"Given {given}: {exercise.label(comparison.key)}: {comparison.words}."


def diagnose(
    exercise: Exercise, expected: list[dict], got: list[dict], failed: list[Comparison], mistakes: list[Explanation]
) -> tuple[str, str]:
    """The slug and the words for an answer that failed.

    A mistake whose evidence agrees everywhere; else a symptom that checks.py declares; else the mistake that explains most
    of what is wrong; else the one that made the same calls, if it explains anything. The order of calls also decides
    between mistakes that no number tells apart.
    """
    ranked = sorted(
        (
            (_explains(exercise, got, failed, mistake), _same_calls(got, failed, mistake.records), -i)
            for i, mistake in enumerate(mistakes)
        ),
        reverse=True,
    )
    best = [(share, calls, mistakes[-i]) for share, calls, i in ranked]
    if best and best[0][0] == 1.0:
        return best[0][2].slug, best[0][2].message
    words = {mistake.slug: mistake.message for mistake in reversed(mistakes)}
    for slug, rule in exercise.symptoms:
        if slug in words and _holds(rule, failed):
            return slug, words[slug]
    if best:
        share, _, mistake = max(best, key=lambda row: row[0] + 0.25 * row[1])
        if share > EXPLAINS_MOST:
            return mistake.slug, mistake.message
    if all(comparison.was_raised for comparison in failed):
        return "raises", SPECIAL["raises"]
    solution_calls = _same_calls(got, failed, expected)
    alike = [(calls, share, mistake) for share, calls, mistake in best if calls == 1.0 and share > 0]
    if alike and solution_calls < 1.0:
        mistake = max(alike, key=lambda row: row[1])[2]
        return mistake.slug, mistake.message
    slug = "raises" if _telling(exercise, failed).was_raised else "wrong_result"
    return slug, SPECIAL[slug]


def _holds(rule: Callable, failed: list[Comparison]) -> bool:
    try:
        return bool(rule(failed))
    except (
        Exception
    ):  # evidence may be of any type where an answer is wrong; a rule that does not understand it says no
        return False


def _telling(exercise: Exercise, failed: list[Comparison]) -> Comparison:
    """The failure that the student is shown: the first one of the main part, if that is wrong."""
    return next((comparison for comparison in failed if comparison.part == exercise.core), failed[0])


def faults(comparisons: list[Comparison]) -> set[tuple[str, int, str]]:
    """Where evidence is wrong: probe, draw, key."""
    return {(c.probe, c.draw, c.key) for c in comparisons if c.words}


def _explains(exercise: Exercise, got: list[dict], failed: list[Comparison], mistake: Explanation) -> float:
    """Of all that is wrong in the answer or in the mistake, the share in which both show the same."""
    mine = faults(failed)
    pairs = {(a["probe"], a["draw"]): (a, b) for a, b in zip(got, mistake.records, strict=True)}
    agree = 0
    for probe, draw, key in mine & mistake.faults:
        record, other = pairs[probe, draw]
        a, b = record["seen"].get(key, MISSING), other["seen"].get(key, MISSING)
        if a is MISSING and b is MISSING:
            same_place = record["seen"].keys() == other["seen"].keys()
            agree += same_place and _same_error(record["error"], other["error"])
        elif a is not MISSING and b is not MISSING:
            agree += difference(b, a, exercise.ulps) is None
    return agree / len(mine | mistake.faults)


def _same_error(a: dict | None, b: dict | None) -> bool:
    if a is None or b is None:
        return a is b
    return (a["type"], a["message"]) == (b["type"], b["message"])


def _same_calls(got: list[dict], failed: list[Comparison], other: list[dict]) -> float:
    """How alike the order of calls is in the draws that failed, from 0 to 1."""
    where = {(comparison.probe, comparison.draw) for comparison in failed}
    pairs = [
        (tuple(a["calls"]), tuple(b["calls"]))
        for a, b in zip(got, other, strict=True)
        if (a["probe"], a["draw"]) in where and (a["calls"] or b["calls"])
    ]
    return sum(_alike(a, b) for a, b in pairs) / len(pairs) if pairs else 0.0


@functools.lru_cache(maxsize=10_000)
def _alike(a: tuple[str, ...], b: tuple[str, ...]) -> float:
    return SequenceMatcher(None, a, b).ratio()
