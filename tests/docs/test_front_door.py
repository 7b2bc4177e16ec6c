"""A new user's first quarter of an hour: the course opens, the widget moves, an exercise is done wrong, then right.

The two pictures of the README are made here: build/screenshots/lesson.png and exercise.png.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from commands import Shell

WRONG = """\
def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    return float(norm)"""
LINES = WRONG.splitlines()
RIGHT = "\n".join([*LINES[:2], LINES[3], LINES[2], *LINES[4:]])

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.skipif(os.name != "posix", reason="requires POSIX")]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The address and the token of the course as `ampkit lab` opens it."""
    from lab_server import free_port

    home = tmp_path_factory.mktemp("home")
    shell = Shell([], home, home)
    for name, value in (
        ("notebook-extension/tracker", {"windowingMode": "none"}),  # all cells stay in the page, to be found
        ("apputils-extension/notification", {"fetchNews": "false", "checkForUpdates": False}),
    ):
        file = home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value), encoding="utf-8")
    with shell.serving(f"ampkit lab --no-browser --port {free_port()}") as where:
        yield where


@pytest.fixture(scope="module")
def page():
    from lab_server import ARGUMENTS, chromium

    if chromium() is None:
        pytest.skip("requires Chromium, for example Debian's package chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="requires playwright")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        tab = browser.new_page(viewport={"width": 1200, "height": 860})
        tab.set_default_timeout(120_000)
        yield tab
        browser.close()


@pytest.fixture(scope="module")
def pictures(root):
    folder = root / "build" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Notebook:
    """A notebook open in JupyterLab."""

    def __init__(self, page, lab, path: str, pictures: Path) -> None:
        self.page, self.failed = page, pictures / "failed.png"
        address, token = lab
        page.goto(f"{address}/lab/tree/{path}?token={token}&reset", wait_until="domcontentloaded")
        page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        # The indicator beside the kernel's name is idle from the start; the status bar waits for the kernel's own word.
        page.get_by_text(re.compile(r"Python 3.* \| Idle")).first.wait_for()

    def cell(self, text: str):
        """The last code cell with this text in it."""
        editor = self.page.locator(".cm-content", has_text=text)
        return self.page.locator(".jp-CodeCell").filter(has=editor).last

    def run(self, text: str, source: str | None = None) -> str:
        """Run the cell, with another source if one is given; the text below it."""
        cell = self.cell(text)
        cell.locator(".cm-content").click()
        if source is not None:
            self.page.keyboard.press("Control+A")
            self.page.keyboard.insert_text(source)
        before = cell.locator(".jp-InputArea-prompt").first.inner_text()
        self.page.keyboard.press("Control+Enter")
        prompt = cell.locator(".jp-InputArea-prompt").first
        for _ in range(480):
            now = prompt.inner_text()
            if re.search(r"\[\d+\]", now) and now != before:
                self.page.wait_for_timeout(300)
                return cell.locator(".jp-OutputArea").first.inner_text()
            self.page.wait_for_timeout(250)
        self.page.screenshot(path=self.failed)
        raise AssertionError(f"the cell with {text!r} did not end within two minutes; see {self.failed}")

    def picture(self, text: str, path) -> None:
        self.cell(text).evaluate("element => element.scrollIntoView({block: 'start'})")
        self.page.wait_for_timeout(600)
        self.page.screenshot(path=path)
        assert path.stat().st_size < 250_000


def test_the_lessons_widget_answers_with_pytorchs_own_message(page, lab, pictures):
    lesson = Notebook(page, lab, "lessons/03_gradscaler.ipynb", pictures)
    lesson.run("from ampkit.widgets import")
    lesson.run("scaler_machine(")
    widget = lesson.cell("scaler_machine(")
    for label in ("scale(loss).backward()", "unscale_", "unscale_"):
        widget.get_by_role("button", name=label, exact=True).first.click()
        page.wait_for_timeout(400)
    said = widget.get_by_text("unscale_() has already been called on this optimizer since the last update().")
    said.first.wait_for()
    lesson.picture("scaler_machine(", pictures / "lesson.png")


def test_an_exercise_done_wrong_is_explained_and_done_right_is_full_marks(page, lab, pictures):
    exercise = Notebook(page, lab, "exercises/03_gradscaler/03_gradscaler.ipynb", pictures)
    exercise.run("from autograder import Checks")
    exercise.run("def clipped_step", WRONG)
    said = exercise.run('check("clipped_step", "update")')
    assert "0 of 2 points" in said and "unscale_after_clip" in said and "expected" in said
    assert "Traceback" not in said
    exercise.picture("def clipped_step", pictures / "exercise.png")
    exercise.run("def clipped_step", RIGHT)
    assert "right (2 points)" in exercise.run('check("clipped_step", "update")')
    assert "right (1 point)" in exercise.run('check("clipped_step", "norm")')
