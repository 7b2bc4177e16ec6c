"""Every plot has a title, units and an alt text that says true numbers."""

import math

import pytest
import torch

pytest.importorskip("matplotlib", reason="requires matplotlib to draw")
from ampkit import plots
from ampkit.formats import BF16, E4M3, E5M2, FP16, TF32

GRADS = [torch.tensor([0.0, 2.0**-30, 2.0**-20, 2.0**-10, -(2.0**-2)]), torch.tensor([[2.0**-25]])]


def examples():
    return {
        "histogram": plots.gradient_histogram(GRADS, (1.0, 2.0**16)),
        "ranges": plots.range_histogram(GRADS),
        "rounding": plots.rounding_error(),
        "scale": plots.scale_history([4.0, 2.0, 2.0], [True, False, False]),
        "loss": plots.loss_curves({"fp32": [2.0, 1.0], "fp16": [2.0, 1.5]}),
        "rates": plots.learning_rates({"by step": [0.1, 0.05, 0.0], "by batch": [0.1, 0.0, 0.1]}),
        "cost": plots.init_scale_cost({1.0: (0, 2000), 4.0: (1, 0)}, 2.0),
    }


@pytest.mark.parametrize("name", ["histogram", "ranges", "rounding", "scale", "loss", "rates", "cost"])
def test_a_plot_has_title_axis_labels_and_an_alt_text(name):
    shown = examples()[name]
    axes = shown.figure.axes
    titled = [axis.get_title(loc="left") for axis in axes]
    assert all(titled)
    assert all(axis.get_ylabel() for axis in axes)
    assert axes[-1].get_xlabel()
    assert shown.alt.endswith(".") and shown.alt.count(". ") == 0
    assert f'alt="{shown.alt}"' in shown.html
    assert shown._repr_mimebundle_()["text/plain"] == shown.alt
    assert shown.png.startswith(b"\x89PNG")


def test_the_histogram_counts_what_fp16_really_does():
    flat = torch.cat([g.flatten() for g in GRADS])
    flat = flat[flat != 0]
    for scale in (1.0, 2.0**10, 2.0**18):
        half = (flat * scale).half()
        lost, over = (half == 0).double().mean().item(), half.isinf().double().mean().item()
        said = plots.gradient_histogram(GRADS, (scale,)).alt
        assert f"{lost:.1%} become zero" in said
        assert f"{over:.1%} overflow" in said


def test_the_zones_agree_with_fp16_at_their_borders():
    edges = torch.tensor([2.0**-25, 2.0**-25 * 1.001, 2.0**-14, 65519.0, 65520.0], dtype=torch.float64)
    shares = plots._shares(edges.log2())
    half = edges.half()
    assert shares["lost"] == (half == 0).double().mean()
    assert shares["overflow"] == half.isinf().double().mean()
    assert shares["subnormal"] == pytest.approx(1 / 5)
    assert sum(shares.values()) == pytest.approx(1.0)


def test_the_ranges_lose_what_pytorchs_casts_lose():
    borders = torch.tensor([1.5 * 2.0**-25, 2.0**-25, 2.0**-17, 2.0**-10, 463.0, 65520.0, 1e38])
    said = plots.range_histogram([borders], (FP16, BF16, E5M2)).alt
    for fmt in (FP16, BF16, E5M2):
        cast = borders.to(fmt.dtype).float()
        lost, over = (cast == 0).double().mean().item(), cast.isinf().double().mean().item()
        assert f"{fmt.name} loses {lost:.1%} to zero and {over:.1%} to overflow" in said
    assert "FP8 E4M3 loses 57.1% to zero and 28.6% to overflow" in plots.range_histogram([borders], (E4M3,)).alt


def test_the_rounding_error_is_half_an_eps_until_the_subnormals_and_then_grows():
    axis = plots.rounding_error((FP16, BF16)).figure.axes[0]
    for fmt, line in zip((FP16, BF16), axis.get_lines(), strict=True):
        error = dict(zip((round(x - 0.5) for x in line.get_xdata()), line.get_ydata(), strict=True))
        flat = [error[place] for place in error if place >= math.log2(fmt.smallest_normal)]
        assert max(flat) <= fmt.eps / 2 < 1.1 * min(flat)
    half = dict(zip(axis.get_lines()[0].get_xdata(), axis.get_lines()[0].get_ydata(), strict=True))
    assert half[-27.5] == 1.0 and max(half) == 14.5
    assert 1.7 < half[-18.5] / half[-17.5] < 2.3


def test_tf32_cannot_be_cast_to_and_that_is_said():
    with pytest.raises(ValueError, match="leave TF32 out"):
        plots.rounding_error((TF32,))


@pytest.mark.parametrize("draw", [plots.gradient_histogram, plots.range_histogram])
def test_a_histogram_of_nothing_says_why(draw):
    with pytest.raises(ValueError, match="zero or not finite"):
        draw([torch.zeros(3), torch.tensor([float("inf")])])


def test_the_scale_history_counts_the_skipped_steps():
    assert examples()["scale"].alt.startswith("1 of 3 steps are skipped and 2 taken")


def test_learning_rates_are_drawn_on_a_linear_axis_and_their_turns_are_counted():
    shown = plots.learning_rates({"falls": [1.0, 0.5, 0.0], "swings": [1.0, 0.0, 1.0, 0.0], "holds": [0.5, 0.5, 0.5]})
    axis = shown.figure.axes[0]
    assert axis.get_yscale() == "linear"
    assert list(axis.get_lines()[0].get_ydata()) == [1.0, 0.5, 0.0]
    assert "from 1 to 0 with 0 turns (falls)" in shown.alt
    assert "from 1 to 0 with 2 turns (swings)" in shown.alt
    assert "with 0 turns (holds)" in shown.alt
