"""StepReport: the log keeps every number, and the readers pass the stream through."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ampkit import ReportError, StepReport, progress, read_reports, write_reports

numbers = st.floats(allow_nan=True, allow_infinity=True)
step_reports = st.builds(
    StepReport,
    step=st.integers(0, 2**40),
    loss=numbers,
    grad_norm=numbers,
    scale=st.none() | numbers,
    skipped=st.booleans(),
    samples=st.integers(1, 2**20),
    seconds=st.floats(0, 1e6),
    peak_bytes=st.none() | st.integers(0, 2**48),
    lr=st.none() | st.floats(0, 1e6),
)


def a_report(**changes):
    values = dict(
        step=0, loss=2.3, grad_norm=0.1, scale=65536.0, skipped=False, samples=8, seconds=0.5, peak_bytes=None
    )
    return StepReport(**{**values, **changes})


@given(step_reports)
def test_a_record_comes_back_from_json_as_it_was(report):
    assert repr(StepReport.from_json(report.to_json())) == repr(report)  # repr: nan is not equal to itself


@given(step_reports)
def test_a_record_is_strict_json_with_inf_and_nan_as_strings(report):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    record = json.loads(report.to_json(), parse_constant=refuse)
    assert isinstance(record["loss"], str) == (not math.isfinite(report.loss))


def test_a_log_is_written_step_by_step_and_read_back(tmp_path):
    log = tmp_path / "run.jsonl"
    written = [a_report(step=0), a_report(step=1, grad_norm=math.inf, skipped=True)]
    stream = write_reports(iter(written), log)
    assert next(stream) == written[0]
    assert read_reports(log) == written[:1]  # already there, so that a killed run keeps its log
    assert list(stream) == written[1:]
    assert read_reports(log) == written


@pytest.mark.parametrize("line", ["loss 2.3", "[]", '{"step": 0}', a_report().to_json().replace("2.3", '"big"')])
def test_a_line_that_is_no_record_is_an_error_that_names_the_line(tmp_path, line):
    log = tmp_path / "run.jsonl"
    log.write_text(a_report().to_json() + "\n" + line + "\n")
    with pytest.raises(ReportError, match="line 2"):
        read_reports(log)


def test_the_progress_bar_passes_the_reports_through_and_counts_skips(capsys):
    written = [a_report(skipped=True), a_report(step=1, scale=32768.0, peak_bytes=5 * 2**20)]
    assert list(progress(iter(written), total=2)) == written
    shown = capsys.readouterr().err
    for words in ("2/2", "loss=2.3000", "scale=32768", "skips=1", "samples/s=16", "peak_mib=5"):
        assert words in shown


def test_a_log_from_before_schedules_is_read():
    line = a_report().to_json().replace(', "lr": null', "")
    assert "lr" not in line and StepReport.from_json(line) == a_report()


@pytest.mark.parametrize("tail", ["", '{"step": 5, "lo', "\n"])
def test_a_run_that_goes_on_keeps_the_log_up_to_where_it_goes_on(tmp_path, tail):
    log = tmp_path / "run.jsonl"
    log.write_text("".join(a_report(step=step).to_json() + "\n" for step in range(5)) + tail)
    list(write_reports(iter([a_report(step=3, loss=9.0), a_report(step=4, loss=9.0)]), log))
    assert [(report.step, report.loss) for report in read_reports(log)] == [
        (0, 2.3),
        (1, 2.3),
        (2, 2.3),
        (3, 9.0),
        (4, 9.0),
    ]


def test_a_run_that_begins_anew_begins_its_log_anew(tmp_path):
    log = tmp_path / "run.jsonl"
    list(write_reports(iter([a_report(step=0), a_report(step=1)]), log))
    list(write_reports(iter([a_report(step=0, loss=1.0)]), log))
    assert [report.loss for report in read_reports(log)] == [1.0]


def test_the_progress_bar_of_a_run_that_goes_on_begins_there_and_shows_the_learning_rate(capsys):
    list(progress(iter([a_report(step=7, lr=0.25), a_report(step=8, lr=0.125)]), total=9))
    shown = capsys.readouterr().err
    assert "9/9" in shown and "lr=0.125" in shown
