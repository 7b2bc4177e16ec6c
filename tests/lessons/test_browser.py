"""Opens each lesson in JupyterLab in headless Chromium, runs it, answers a question, plays with the widgets."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import nbformat
import pytest
from lab_server import ARGUMENTS, chromium, serving
from lesson_reading import FOLDER, LESSONS
from lesson_record import check_run

SHOTS = FOLDER.parent / "build" / "screenshots"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(chromium() is None, reason="requires Chromium, for example Debian's package chromium"),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    pytest.importorskip("jupyterlab", reason="requires JupyterLab")
    root = tmp_path_factory.mktemp("course") / "lessons"
    shutil.copytree(FOLDER, root)
    with serving(root, tmp_path_factory.mktemp("settings"), FOLDER.parent) as (address, token):
        yield address, token, root


@pytest.fixture(scope="module")
def page(lab):
    sync_api = pytest.importorskip("playwright.sync_api", reason="requires playwright")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        tab = browser.new_page(viewport={"width": 1180, "height": 1000})
        tab.set_default_timeout(120_000)
        yield tab
        browser.close()


def open_and_run(page, lab, name):
    """Opens the notebook with every cell in the page, runs all cells, waits until the kernel is idle; returns it as saved."""
    address, token, root = lab
    page.goto(f"{address}/lab/tree/{name}?token={token}&reset", wait_until="domcontentloaded")
    page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").first.wait_for()
    # On a busy machine the indicator is idle before there is a kernel, and what is run then is lost.
    page.locator("#jp-main-statusbar").get_by_text("| Idle").first.wait_for()
    page.locator(".jp-Notebook .jp-Cell").first.click()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.wait_for_function(
        """() => {
            const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputArea-prompt')].map(p => p.innerText);
            return prompts.length > 0 && prompts.every(text => /\\[\\d+\\]/.test(text));
        }""",
        timeout=300_000,
    )
    before = (root / name).stat().st_mtime_ns
    page.get_by_role("menuitem", name="File", exact=True).click()
    page.get_by_role("menuitem", name=re.compile("^Save Notebook(?! As)")).click()
    for _ in range(200):
        if (root / name).stat().st_mtime_ns != before and not page.locator(".lm-TabBar-tab.jp-mod-dirty").count():
            break
        page.wait_for_timeout(100)
    return nbformat.read(root / name, as_version=4)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_runs_in_jupyterlab_and_answers_to_clicks(page, lab, path: Path, report):
    check_run(path.stem, open_and_run(page, lab, path.name), report)
    SHOTS.mkdir(parents=True, exist_ok=True)
    assert page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.error']").count() == 0
    assert page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
    pictures = page.locator(".jp-OutputArea-output img")
    assert pictures.count() > 0
    assert page.locator(".jp-OutputArea-output img:not([alt]), .jp-OutputArea-output img[alt='']").count() == 0

    assert not any(still.is_visible() for still in page.locator("[class^='ampkit-still-']").all())
    for number, heading in enumerate(page.locator(".jp-RenderedMarkdown h2").all(), 1):
        heading.evaluate("element => element.scrollIntoView()")
        page.wait_for_timeout(200)
        page.screenshot(path=SHOTS / f"{path.stem}_section_{number:02d}.png")

    question = page.locator("button[title^='Predict: ']").first
    question.click()
    page.get_by_text("You said:").first.wait_for()
    picture(page, question, f"{path.stem}_prediction.png")
    if path.stem in PLAY:
        PLAY[path.stem](page)


def the_bits_and_the_number_line_follow_clicks_and_keys(page):
    """Lesson 1's widgets: a bit is flipped with the mouse and one with the keyboard, the line is zoomed and refuses."""
    bits = page.locator(".ampkit-bit")
    assert "".join(bits.all_inner_texts()) == "0011111000000000"
    bits.nth(15).click()
    page.get_by_text("+1 × 2^(15 − 15) × (1 + 513/1024)").first.wait_for()
    bits.nth(0).focus()
    page.keyboard.press("Enter")
    page.get_by_text("−1 × 2^(15 − 15) × (1 + 513/1024)").first.wait_for()
    picture(page, bits.first, "01_fp16_range_widget_bits.png")
    page.get_by_role("button", name="FP8 E4M3", exact=True).first.click()
    page.get_by_text("−1 × 2^(7 − 7) × (1 + 4/8)").first.wait_for()
    assert bits.count() == 8

    closer = page.get_by_role("button", name="zoom in", exact=True).first
    closer.click()
    page.locator("svg[aria-label*='from 1.375 to 1.625']").first.wait_for()
    picture(page, closer, "01_fp16_range_widget_line.png")
    board = page.get_by_alt_text("fp32, a CNN on the digits, 400 steps")
    assert board.count() == 1  # one picture, replaced as the loop went on
    picture(page, board, "01_fp16_range_widget_dashboard.png")


def the_explorer_shows_a_ban_and_a_promotion_for_the_calls_that_are_chosen(page):
    """Lesson 2's widget."""
    calls = page.locator(".widget-dropdown select").first
    calls.select_option(label="F.binary_cross_entropy(a, b)")
    banned = page.get_by_text("✗ binary_cross_entropy")
    banned.first.wait_for()
    assert banned.count() == 1  # on CUDA alone
    picture(page, calls, "02_autocast_widget_ban.png")
    calls.select_option(label="torch.cat([a, b])")
    page.get_by_text("casts fp16→fp32").first.wait_for()
    assert page.get_by_text("✗ binary_cross_entropy").count() == 0
    page.get_by_role("button", name="bf16", exact=True).first.click()
    page.get_by_text("a in fp16, b in fp32; autocast to bf16").first.wait_for()


def the_scaler_machine_shows_pytorchs_message_for_a_second_unscale(page):
    """Lesson 3's widget."""
    for label in ("scale(loss).backward()", "unscale_", "unscale_"):
        page.get_by_role("button", name=label, exact=True).first.click()
        page.wait_for_timeout(300)
    said = page.get_by_text("unscale_() has already been called on this optimizer since the last update().")
    said.first.wait_for()
    assert page.get_by_text("▶ UNSCALED").count() == 1
    picture(page, said, "03_gradscaler_widget_refusal.png")


def the_dashboard_of_the_whole_loop_is_one_picture_that_followed_it(page):
    """Lesson 4's live charts: drawn many times, shown once, with the last step in them."""
    board = page.get_by_alt_text("complete, a CNN on digits, 72 steps")
    assert board.count() == 1
    picture(page, board, "04_training_loop_dashboard.png")


PLAY = {
    "01_fp16_range": the_bits_and_the_number_line_follow_clicks_and_keys,
    "02_autocast": the_explorer_shows_a_ban_and_a_promotion_for_the_calls_that_are_chosen,
    "03_gradscaler": the_scaler_machine_shows_pytorchs_message_for_a_second_unscale,
    "04_training_loop": the_dashboard_of_the_whole_loop_is_one_picture_that_followed_it,
}


def picture(page, what, name):
    """A screenshot of the window with `what` in view."""
    what.first.scroll_into_view_if_needed()
    page.wait_for_timeout(400)
    page.screenshot(path=SHOTS / name)
