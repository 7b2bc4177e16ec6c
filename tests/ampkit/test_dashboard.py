"""The dashboard shows what the step records say: live while a loop runs, from a list, and from a log."""

import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from ampkit import ReportError, StepReport, write_reports
from ampkit.widgets import dashboard, watch
from ampkit.widgets.dashboard import COLUMNS, LEFT, PLOT, charts_svg

SVG = "{http://www.w3.org/2000/svg}"
FIRST = StepReport(0, 2.0, 0.5, 4.0, False, 64, 0.01, None)


def run(count, **fields):
    return [replace(FIRST, step=step, loss=2.0 / (step + 1), **fields) for step in range(count)]


def words(svg):
    return [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def crosses(svg):
    return svg.count("l10,10 m0,-10 l-10,10") - 1  # one of them is in the legend


def test_a_skipped_step_and_its_infinite_norm_get_a_cross_each():
    reports = run(6)
    assert crosses(charts_svg(reports)) == 0
    reports[2] = replace(reports[2], skipped=True, grad_norm=math.inf)
    drawn = charts_svg(reports)
    assert crosses(drawn) == 2
    assert "1 of 6 steps skipped" in words(drawn)
    reports[4] = replace(reports[4], loss=math.nan)
    assert crosses(charts_svg(reports)) == 3


def test_what_was_not_measured_is_said_and_not_drawn():
    said = words(charts_svg(run(3, scale=None)))
    assert "no GradScaler in this loop" in said and "measured on CUDA only" in said
    assert "no step yet" in words(charts_svg([]))
    said = words(charts_svg(run(3, peak_bytes=3 * 2**20)))
    assert "measured on CUDA only" not in said and "3" in said
    assert "no finite value" in words(charts_svg([replace(FIRST, loss=math.nan, grad_norm=math.nan)]))


def test_the_numbers_beside_the_charts_are_the_records():
    reports = run(4)
    reports[1] = replace(reports[1], seconds=0.02)
    said = words(charts_svg(reports))
    assert "0.5 to 2" in said  # the loss
    assert "median 6,400" in said and "3,200 to 6,400" in said
    assert "2²" in said  # the scale


def test_the_curve_goes_through_the_first_and_the_last_value():
    root = ElementTree.fromstring(charts_svg(run(5), total=9))
    curve = next(path.attrib["d"] for path in root.iter(f"{SVG}path") if "1.8" in path.attrib["style"])
    points = [tuple(map(float, point)) for point in re.findall(r"([\d.]+),([\d.]+)", curve)]
    assert len(points) == 5
    assert points[-1][0] - points[0][0] == pytest.approx(PLOT / 2, abs=0.2)  # 5 of 9 steps: half of the width
    assert [y for _, y in points] == sorted(y for _, y in points)  # the loss falls, and y grows downwards


def test_a_long_run_is_thinned_out_but_keeps_its_extremes():
    reports = run(20_000)
    reports[12_345] = replace(reports[12_345], loss=1e6)
    drawn = charts_svg(reports)
    assert len(drawn) < 60_000
    assert f"{reports[-1].loss:.4g} to 1e+06" in words(drawn)
    curve = next(p.attrib["d"] for p in ElementTree.fromstring(drawn).iter(f"{SVG}path") if "1.8" in p.attrib["style"])
    assert curve.count(",") <= 2 * COLUMNS
    peak = min(re.findall(r"([\d.]+),([\d.]+)", curve), key=lambda point: float(point[1]))
    assert float(peak[0]) == pytest.approx(LEFT + PLOT * 12_345 / 19_999, abs=0.2)


def test_a_list_of_reports_is_a_picture_that_needs_no_kernel():
    board = dashboard(run(3), "three steps")
    assert board.widget is None
    assert board.alt == ("three steps, 3 steps: loss 2 to 0.667, gradient norm 0.5 to 0.5, scale 4, 0 skipped.")
    assert f'alt="{board.alt}"' in board.html


def test_a_log_can_be_read_again_while_it_grows(tmp_path):
    pytest.importorskip("ipywidgets", reason="requires ipywidgets for the live view")
    log = tmp_path / "run.jsonl"
    stream = write_reports(run(6), log)
    next(stream)
    board = dashboard(log)
    assert len(board.reports) == 1 and board.title == "run.jsonl"
    picture, (again, says) = board.widget.children[0], board.widget.children[1].children
    list(stream)
    again.click()
    assert len(board.reports) == 6 and "6 steps" in says.value and "6 steps" in picture.value
    log.write_text("{}\n")
    again.click()
    assert "line 1" in says.value and len(board.reports) == 6


def test_records_without_a_log_cannot_be_read_again():
    board = dashboard([])
    with pytest.raises(ReportError, match=r"without a log, .* Give dashboard\(\) a log's path"):
        board.read()
    assert board.reports == []


def test_a_log_that_is_not_there_says_what_writes_one(tmp_path):
    with pytest.raises(ReportError, match=r"cannot be read: .* `ampkit train LOOP --log FILE` writes one"):
        dashboard(tmp_path / "none.jsonl")


def test_watch_passes_the_reports_through_and_draws_nothing_outside_of_a_notebook(capsys):
    assert list(watch(run(5), total=5)) == run(5)
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def published():
    """What a notebook would get: the list of (message type, content) that IPython publishes."""
    interactive = pytest.importorskip("IPython.core.interactiveshell", reason="requires IPython").InteractiveShell
    shell = interactive.instance()
    messages = []
    shell.display_pub.publish = lambda data, metadata=None, transient=None, update=False, **_: messages.append(
        (update, transient["display_id"], data)
    )
    try:
        yield messages
    finally:
        interactive.clear_instance()


def test_watch_redraws_one_picture_in_a_notebook(published):
    assert list(watch(run(4), every_s=0.0)) == run(4)
    assert [update for update, _, _ in published] == [False, True, True, True, True]
    assert len({name for _, name, _ in published}) == 1
    assert ["4 steps" in data["text/html"] for _, _, data in published] == [False, False, False, True, True]


def test_watch_says_below_the_charts_that_the_gpu_is_shared(published, monkeypatch):
    monkeypatch.setattr("ampkit.gpu.sharing", lambda: "Another process computes on this GPU: pid 7.")
    on_gpu = [replace(report, peak_bytes=2**20) for report in run(3)]
    list(watch(on_gpu, every_s=0.0))
    words = "Measured on a shared GPU: not to be trusted. Another process computes on this GPU: pid 7."
    assert all(words in data["text/html"] for _, _, data in published)
    published.clear()
    list(watch(run(3), every_s=0.0))  # on a CPU it is nobody's business
    assert published and not any("shared" in data["text/html"] for _, _, data in published)


def test_watch_draws_the_last_step_also_when_the_loop_ends_with_an_error(published):
    def broken():
        yield from run(3)
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        list(watch(broken(), every_s=3600.0))
    assert [("1 step:" in data["text/html"], "3 steps" in data["text/html"]) for _, _, data in published] == [
        (True, False),
        (False, True),
    ]
