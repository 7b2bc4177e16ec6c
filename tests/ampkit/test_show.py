"""What is shown reads everywhere: in HTML, in plain text, without a GPU, without a kernel."""

import json
import subprocess
import sys

import pytest

from ampkit import show

DIFF = "--- a.py\n+++ b.py\n@@ -1,2 +1,2 @@\n same\n-    loss.backward()\n+    scaler.scale(loss).backward()  # <2>\n"


def test_a_diff_keeps_its_signs_and_escapes_what_it_shows():
    shown = show.diff(DIFF, "from a to b")
    assert "+    scaler.scale(loss).backward()  # &lt;2&gt;" in shown.html
    assert "-    loss.backward()" in shown.html
    assert repr(shown) == DIFF
    assert shown._repr_mimebundle_()["text/plain"] == DIFF


def test_a_table_is_aligned_in_text_and_escaped_in_html():
    shown = show.table(["scale", "what"], [[2.0**16, "<b>"], [0.5, "ok"]], "Two rows.")
    assert repr(shown) == " scale  what\n65,536  <b>\n   0.5  ok\nTwo rows."
    assert "&lt;b&gt;" in shown.html and "<b>" not in shown.html
    assert "text-align:right" in shown.html


def test_a_table_says_yes_and_no_and_shortens_floats():
    shown = show.table(["n", "skipped", "loss"], [[1, True, 1.23456789], [20000, False, float("nan")]])
    assert "yes" in repr(shown) and "no" in repr(shown) and "1.235" in repr(shown) and "20,000" in repr(shown)


@pytest.mark.parametrize(
    ("value", "written"), [(65536.0, "2¹⁶"), (2.0**-24, "2⁻²⁴"), (1.0, "1"), (1000.0, "1000"), (0.0, "0")]
)
def test_a_power_of_two_is_written_as_one(value, written):
    assert show.power(value) == written


def test_the_machine_line_says_device_and_version_and_that_no_gpu_run_is_stored(tmp_path):
    import torch

    text = repr(show.machine(tmp_path))
    assert torch.__version__ in text
    assert "none yet" in text


def test_the_machine_line_prints_the_stamp_of_a_stored_run(tmp_path):
    stamp = {"gpu": "H200", "driver": "580.1", "torch": "2.14.1", "date": "2026-11-29", "commit": "abc"}
    (tmp_path / "bench.json").write_text(json.dumps(stamp))
    text = repr(show.machine(tmp_path))
    assert "H200, driver 580.1, PyTorch 2.14.1, 2026-11-29" in text


def test_a_stored_run_without_its_stamp_is_not_shown(tmp_path):
    (tmp_path / "bench.json").write_text(json.dumps({"gpu": "H200", "speed": 3}))
    with pytest.raises(ValueError, match="driver, torch, date, commit"):
        show.machine(tmp_path)


def test_a_drawing_is_an_image_with_its_alt_text_escaped():
    shown = show.drawing("<svg/>", 'a "b" <c>', "note")
    assert 'alt="a &quot;b&quot; &lt;c&gt;"' in shown.html
    assert "data:image/svg+xml;base64," in shown.html
    assert "note" in repr(shown)


def test_importing_the_display_pieces_needs_neither_jupyter_nor_matplotlib():
    names = "ampkit, ampkit.show, ampkit.plots, ampkit.predict, ampkit.widgets"
    check = f"import sys; import {names}; print([m for m in ('matplotlib','ipywidgets','IPython') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
