"""The scaler machine is the real scaler: every reading and every refusal is PyTorch's."""

import xml.etree.ElementTree as ElementTree

import pytest
import torch

from ampkit.widgets import ScalerLab, scaler_machine
from ampkit.widgets.scaler_view import chart_svg, message_html, readings_html, state_svg


def lab(gradient=2.0**-4, **settings):
    made = ScalerLab(**settings)
    made.gradient = gradient
    return made


def test_one_iteration_goes_through_the_three_stages():
    machine = lab()
    seen = [machine.stage]
    for call in (machine.backward, machine.unscale, machine.clip, machine.step, machine.update):
        call()
        seen.append(machine.stage)
    assert seen == ["READY", "READY", "UNSCALED", "UNSCALED", "STEPPED", "READY"]
    assert not any(call.error for call in machine.calls)
    assert machine.steps_taken == 1


def test_an_overflow_skips_the_step_and_halves_the_scale():
    machine = lab(gradient=1.0)
    machine.iteration()
    assert machine.scale == 2.0**15
    assert machine.steps_taken == 0
    assert torch.equal(machine.model.weight, torch.zeros(1, 4))
    assert machine.updates[-1].skipped
    machine.iteration()
    assert machine.scale == 2.0**15
    assert machine.steps_taken == 1


def test_the_overflow_is_that_of_fp16():
    machine = lab(gradient=1.0, init_scale=65519.0)
    machine.backward()
    machine.unscale()
    assert machine.found_inf == 0
    machine = lab(gradient=1.0, init_scale=65520.0)
    machine.backward()
    assert machine.found_inf is None  # nobody has looked before unscale_
    machine.unscale()
    assert machine.found_inf == 1


def test_a_gradient_too_small_for_the_scale_vanishes_but_the_true_one_is_shown():
    machine = lab(gradient=2.0**-30, init_scale=2.0)
    machine.backward()
    assert machine.stored_norm == 0
    assert machine.true_norm > 0
    assert "vanished" in machine.calls[-1].meaning


def test_the_stored_gradient_is_the_true_one_times_the_scale_until_unscale():
    machine = lab()
    machine.backward()
    assert machine.stored_norm == pytest.approx(machine.true_norm * 2**16, rel=1e-6)
    machine.unscale()
    assert machine.stored_norm == pytest.approx(machine.true_norm, rel=1e-6)


def test_the_scale_grows_after_growth_interval_clean_updates():
    machine = lab(growth_interval=4)
    scales = [machine.iteration() and machine.scale for _ in range(8)]
    assert scales == [2.0**16] * 3 + [2.0**17] * 4 + [2.0**18]


def test_a_nan_in_the_forward_drives_the_scale_below_one():
    machine = lab()
    machine.nan = True
    for _ in range(20):
        machine.iteration()
    assert machine.scale == 2.0**-4
    assert machine.steps_taken == 0


WRONG = {
    ("backward", "unscale", "unscale"): (
        "RuntimeError: unscale_() has already been called on this optimizer since the last update()."
    ),
    ("backward", "step", "unscale"): "RuntimeError: unscale_() is being called after step().",
    ("backward", "step", "step"): "RuntimeError: step() has already been called since the last update().",
    ("backward", "update"): "AssertionError: No inf checks were recorded prior to update.",
    ("step",): "AssertionError: No inf checks were recorded for this optimizer.",
}


@pytest.mark.parametrize("order", WRONG, ids="-".join)
def test_a_wrong_order_shows_pytorchs_own_words_and_what_they_mean(order):
    machine = lab()
    for name in order:
        getattr(machine, name)()
    last = machine.calls[-1]
    assert last.error == WRONG[order]
    assert last.meaning and last.meaning != "PyTorch refused this order."
    assert [call.error for call in machine.calls[:-1]] == [None] * (len(order) - 1)
    assert "✗" in message_html(machine)


def test_what_pytorch_does_not_notice_is_said():
    machine = lab()
    machine.backward()
    machine.clip()
    assert "PyTorch does not notice" in machine.calls[-1].meaning
    machine.unscale()
    machine.backward()
    assert "nothing will unscale them" in machine.calls[-1].meaning


def test_every_drawing_is_well_formed_and_marks_the_stage_in_words():
    machine = lab(gradient=1.0)
    for name in ("backward", "unscale", "step", "update"):
        getattr(machine, name)()
        root = ElementTree.fromstring(state_svg(machine))
        words = [element.text for element in root.iter() if element.tag.endswith("text")]
        assert f"▶ {machine.stage}" in words
        assert machine.stage in root.attrib["aria-label"]
        assert "get_scale()" in readings_html(machine)
    for count in (0, 1, 5, 200):
        ElementTree.fromstring(chart_svg(machine.updates * count, machine.init_scale))


def test_the_first_view_is_a_picture_with_alt_text_that_needs_no_kernel():
    bundle = scaler_machine()._repr_mimebundle_()
    assert 'alt="State diagram of one optimizer' in bundle["text/html"]
    assert "<svg" not in bundle["text/html"]  # a data image: sanitisers drop inline SVG
    assert "READY" in bundle["text/plain"]


def test_a_notebook_gets_the_widget_and_a_first_view_that_the_widget_hides():
    capture = pytest.importorskip("IPython.utils.capture", reason="requires IPython")
    shell = pytest.importorskip("IPython.core.interactiveshell", reason="requires IPython").InteractiveShell
    shell.instance()
    try:
        with capture.capture_output() as shown:
            scaler_machine()._ipython_display_()
    finally:
        shell.clear_instance()
    live, still = (output.data for output in shown.outputs)
    assert "application/vnd.jupyter.widget-view+json" in live
    assert live["text/html"] == live["text/plain"] == ""
    assert 'class="ampkit-still-' in still["text/html"] and "<img" in still["text/html"]
    assert "application/vnd.jupyter.widget-view+json" not in still


def test_the_buttons_drive_the_lab_and_redraw():
    machine = scaler_machine(gradient=1.0)
    _, calls, state, message, readings, chart, many = machine.widget.children
    before = state.value
    for press in calls.children:
        press.click()
    assert machine.lab.scale == 2.0**15
    assert "32768" in message.value and "32768" in readings.value
    assert "1 skipped" in chart.value
    assert "READY" in before
    many.children[1].click()
    assert len(machine.lab.updates) == 11
    many.children[2].click()
    assert machine.lab.updates == [] and machine.lab.scale == 2.0**16


def test_the_controls_change_the_gradients_and_the_interval():
    machine = scaler_machine()
    size, nan, interval = machine.widget.children[0].children
    size.value, nan.value, interval.value = 2.0**-20, True, 2
    assert (machine.lab.gradient, machine.lab.nan) == (2.0**-20, True)
    assert machine.lab.scaler.get_growth_interval() == 2
