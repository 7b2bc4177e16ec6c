"""The whole way in headless Chromium: a student learns, answers and hands in, the instructor grades, the student reads.

The tests of this file stand in the order of a term and go on from each other. Pictures of all pages are in build/screenshots.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from lab_server import ARGUMENTS, chromium
from people import Person, running, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.usefixtures("hub_can_run"),
    pytest.mark.skipif(chromium() is None, reason="requires Chromium, for example Debian's package chromium"),
]
WORK = "03_gradscaler"
SHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"
MISTAKE = "clip_before_unscale"
COMMENT = "Look at what 3 is for & why. <b>Grace</b>"
# What a student sees of a page that is there: no cell waits, none is left.
ALL_RUN = """() => {
    const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputArea-prompt')].map(prompt => prompt.innerText);
    return prompts.length > 0 && prompts.every(text => /\\[\\d+\\]/.test(text));
}"""
PANEL = ".jp-NotebookPanel:not(.lm-mod-hidden) "


class Tab:
    """A window of somebody's own, which notes what a page could not load, or asks for from elsewhere."""

    def __init__(self, browser, hub, name: str) -> None:
        self.hub, self.name = hub, name
        self.context = browser.new_context(viewport={"width": 1180, "height": 1000})
        self.trouble: list[str] = []
        self.context.set_default_timeout(120_000)  # two cores have a hub, its servers and another browser to carry
        self.context.on("page", self._watch)
        self.page = self.context.new_page()
        self.shots = 0

    def _watch(self, page) -> None:
        page.on("response", lambda one: one.status >= 400 and self.trouble.append(f"{one.status} {one.url}"))
        page.on("request", lambda one: self._is_here(one.url) or self.trouble.append(f"elsewhere: {one.url}"))
        # Jupyter Notebook's page of a terminal misses settings of JupyterLab's and says so in the console.
        page.on("pageerror", lambda error: "/terminals/" in page.url or self.trouble.append(f"{page.url}: {error}"))

    def _is_here(self, url: str) -> bool:
        return url.startswith((self.hub.url, "data:", "blob:", "about:"))

    def shot(self, what: str, page=None) -> None:
        self.shots += 1
        SHOTS.mkdir(parents=True, exist_ok=True)
        (page or self.page).wait_for_timeout(300)
        (page or self.page).screenshot(path=SHOTS / f"hub_{self.name}_{self.shots:02d}_{what}.png")

    def log_in(self, path: str = "") -> None:
        self.page.goto(self.hub.url + path)
        self.page.fill("#username_input", self.name)
        self.page.fill("#password_input", self.hub.passwords[self.name])
        self.shot("logs_in")
        self.page.click("#login_submit")

    def own(self, path: str) -> dict:
        """A file of the own home, as the server gives it."""
        answer = self.page.request.get(f"{self.hub.url}/user/{self.name}/api/contents/{path}")
        assert answer.ok, (answer.status, path)
        return answer.json()

    # JupyterLab

    def menu(self, *names: str) -> None:
        for name in names:
            self.page.get_by_role("menuitem", name=name, exact=True).click()

    def assignments(self) -> None:
        self.menu("Nbgrader", "Assignment List")
        self.page.get_by_text("Released assignments").wait_for()

    def is_open(self) -> None:
        """Wait until a notebook and its kernel are there."""
        self.page.locator(PANEL + ".jp-Notebook .jp-Cell").first.wait_for()
        self.page.locator(PANEL + ".jp-Notebook-ExecutionIndicator[data-status=idle]").first.wait_for()
        # On a busy machine the indicator is idle before there is a kernel, and what is run then is lost.
        self.page.locator("#jp-main-statusbar").get_by_text("| Idle").first.wait_for()

    def cell(self, source: str):
        return self.page.locator(PANEL + ".jp-CodeCell").filter(has=self.page.locator(".cm-content", has_text=source))

    def run(self, source: str, change: str = "") -> str:
        """Run the cell that has this in its source, or what it is changed to; what the cell shows."""
        cell = self.cell(source).first
        cell.locator(".cm-content").click()
        cell.locator(".cm-editor.cm-focused").wait_for()  # or the keys go to whatever else takes the focus as it opens
        if change:
            self.page.keyboard.press("Control+a")
            self.page.keyboard.insert_text(change)
        handle = cell.element_handle()
        before = cell.locator(".jp-InputArea-prompt").inner_text()
        self.page.keyboard.press("Shift+Enter")
        done = """([cell, before]) => {
            const now = cell.querySelector('.jp-InputArea-prompt').innerText;
            return now !== before && /\\d/.test(now);
        }"""
        try:
            self.page.wait_for_function(done, arg=[handle, before])
        except Exception as error:
            self.shot("stuck")
            prompt = cell.locator(".jp-InputArea-prompt").inner_text()
            kernel = self.page.locator(PANEL + ".jp-Notebook-ExecutionIndicator").get_attribute("data-status")
            focus = self.page.evaluate("document.activeElement.outerHTML.slice(0, 300)")
            error.add_note(f"prompt {prompt!r}, kernel {kernel}, focus {focus}")
            raise
        output = cell.locator(".jp-OutputArea")
        return output.inner_text() if output.count() else ""

    def save(self) -> None:
        self.page.keyboard.press("Control+s")
        self.page.locator(".lm-TabBar-tab.jp-mod-current.jp-mod-dirty").wait_for(state="detached")

    def dialog(self, button: str) -> str:
        """What JupyterLab's dialog says; it is closed."""
        dialog = self.page.locator(".jp-Dialog")
        dialog.wait_for(timeout=180_000)
        said = dialog.inner_text()
        dialog.get_by_role("button", name=button, exact=True).click()
        return said

    # formgrader

    def formgrader(self, path: str) -> None:
        self.page.goto(f"{self.hub.url}/services/amp/formgrader/{path}")

    def press(self, row: str, button: str, shot: str) -> str:
        """Press a button in the row of a table. What the window says that then opens; it is closed."""
        self.page.locator("#main-table tr", has_text=row).locator(f".{button} a").click()
        window = self.page.locator(".modal.in")
        window.wait_for(timeout=180_000)
        self.shot(shot)
        said = window.inner_text()
        window.locator(".modal-footer .btn").click()
        window.wait_for(state="detached")
        return said


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hub") / "demo"


@pytest.fixture(scope="module")
def hub(folder):
    with running(folder.parent, "--demo", "--one", "--dir", str(folder)) as hub:
        yield hub


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="requires playwright")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def ada(browser, hub):
    tab = Tab(browser, hub, "ada")
    yield tab
    tab.context.close()


@pytest.fixture(scope="module")
def grace(browser, hub):
    tab = Tab(browser, hub, "grace")
    yield tab
    tab.context.close()


@pytest.fixture(scope="module")
def emmy(hub):
    """A student who asks for the same things without a browser."""
    with Person(hub, "emmy", hub.passwords["emmy"]) as person:
        person.log_in()
        yield person


@pytest.fixture(scope="module")
def room():
    from autograder.room import find_room

    return find_room(WORK)


@pytest.fixture(scope="module")
def wrong(room) -> str:
    """An answer with a known mistake, without the docstring that says so."""
    (mistake,) = [one for one in room.mistakes["clipped_step"] if one.name == MISTAKE]
    return mistake.source[mistake.source.index("def clipped_step") :]


def test_a_student_logs_in_and_runs_a_lesson(ada, hub):
    ada.log_in()
    ada.page.wait_for_url("**/user/ada/lab**")
    ada.page.locator(".jp-Launcher").first.wait_for()
    ada.shot("jupyterlab")
    # All cells stay in the page, so that the test can wait for each of them.
    with Person(hub, "ada", hub.passwords["ada"]) as same:
        same.log_in()
        same.open("/user/ada/lab")
        raw = json.dumps({"windowingMode": "none"})
        assert same.own("PUT", "lab/api/settings/@jupyterlab/notebook-extension:tracker", json={"raw": raw}).ok
    ada.page.goto(f"{hub.url}/user/ada/lab/tree/lessons/{WORK}.ipynb?reset")
    ada.is_open()
    ada.page.locator(".jp-Notebook .jp-Cell").first.click()
    ada.menu("Run", "Run All Cells")
    ada.page.wait_for_function(ALL_RUN, timeout=300_000)
    ada.shot("lesson")
    ada.save()
    cells = [cell for cell in ada.own(f"lessons/{WORK}.ipynb")["content"]["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 10 and all(cell["execution_count"] for cell in cells)
    assert [one for cell in cells for one in cell["outputs"] if one["output_type"] == "error"] == []
    assert ada.trouble == []


def test_a_wrong_answer_is_told_what_is_wrong_and_a_right_one_validates_and_is_handed_in(ada, hub, room, wrong):
    ada.assignments()
    ada.page.get_by_role("button", name="Fetch", exact=True).click()
    ada.page.get_by_role("button", name="Submit", exact=True).wait_for()
    ada.shot("fetched")
    with Person(hub, "ada", hub.passwords["ada"]) as same:  # at home, the other six
        same.log_in()
        same.open("/user/ada/lab")
        answer(same, {**room.solutions, "clipped_step": room.stubs["clipped_step"]})
    ada.page.locator("#fetched_assignments_list .assignment-notebooks-link").click()
    ada.page.locator("#fetched_assignments_list .nested_list_item a").click()
    ada.is_open()
    ada.run("import torch")

    ada.run("def clipped_step", change=wrong)
    said = ada.run('check("clipped_step", "update")')
    ada.shot("is_told")
    assert f"0 of 2 points — {MISTAKE}" in said and "You clip between 2 and 3" in said and "Traceback" not in said

    ada.run("def clipped_step", change=room.solutions["clipped_step"])
    assert "right (2 points)" in ada.run('check("clipped_step", "update")')
    ada.shot("is_right")
    ada.save()
    ada.page.locator(PANEL + ".validate-button").first.click()
    ada.page.locator(".jp-Dialog").wait_for(timeout=180_000)
    ada.shot("validated")
    assert "Success! Your notebook passes all the tests." in ada.dialog("Ok")

    ada.assignments()
    ada.page.get_by_role("button", name="Submit", exact=True).click()
    ada.page.get_by_role("button", name="Fetch Feedback", exact=True).wait_for()
    ada.shot("handed_in")
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", ada.page.locator("#submitted_assignments_list").inner_text())
    assert ada.trouble == []


def answer(person: Person, answers: dict[str, str]) -> None:
    """Write answers into the cells of the fetched notebook."""
    path = f"amp/{WORK}/{WORK}.ipynb"
    notebook = person.read(path)["content"]
    for cell in notebook["cells"]:
        exercise = cell["metadata"].get("nbgrader", {}).get("grade_id")
        cell["source"] = answers.get(exercise, cell["source"])
    person.write(path, notebook)


def test_the_instructor_collects_and_grades_with_the_command_and_with_the_button(ada, grace, emmy, folder, room, wrong):
    emmy.start_server()
    assert emmy.press("fetch", WORK)["success"]
    answer(emmy, {"clipped_step": wrong, "choose_init_scale": room.solutions["choose_init_scale"]})
    assert emmy.press("submit", WORK)["success"]

    grace.log_in("/services/amp/")
    grace.page.wait_for_url("**/services/amp/formgrader/**")
    grace.page.locator("#main-table tr", has_text=WORK).locator(".collect a").wait_for()
    grace.shot("assignments")
    said = grace.press(WORK, "collect", "collected")
    assert "Collected 2 of 2 students' submissions" in said

    grace.page.locator("#main-table tr", has_text=WORK).locator(".num-submissions a").click()
    grace.page.locator("#main-table tr", has_text="emmy").wait_for()
    grace.shot("submissions")
    with grace.context.expect_page() as opened:
        grace.page.get_by_text("terminal", exact=True).click()
    terminal = opened.value
    terminal.locator(".jp-Terminal-body").wait_for()
    terminal.wait_for_timeout(1000)  # it is drawn on a canvas: there is no prompt to wait for
    terminal.locator(".jp-Terminal-body").click()
    terminal.keyboard.type(f"autograder grade {WORK} --student ada")
    terminal.keyboard.press("Enter")
    record = folder / "course" / ".autograder" / "results" / WORK / "ada.json"
    until(record.is_file, "the grade of the command", 120)
    terminal.wait_for_timeout(1000)
    grace.shot("terminal", terminal)
    terminal.close()

    said = grace.press("emmy", "autograde", "autograded")
    assert "Successfully autograded" in said
    grace.page.reload()
    for student, status in (("ada", "19 / 19"), ("emmy", "3 / 19")):
        grace.page.locator("#main-table tr", has_text=student).filter(has_text=status).wait_for()
    grace.shot("graded")
    assert grace.trouble == []


def test_a_comment_by_hand_and_our_words_reach_both_students(ada, grace, emmy):
    grace.formgrader("gradebook")
    grace.page.locator("#main-table a", has_text=WORK).wait_for()
    grace.shot("manual_grading")
    grace.formgrader(f"manage_students/emmy/{WORK}")
    grace.page.locator("#main-table a", has_text=WORK).click()
    grace.page.wait_for_load_state("networkidle")  # only then its script listens for what is typed
    comment = grace.page.locator("#clipped_step-comment")
    comment.scroll_into_view_if_needed()
    comment.fill(COMMENT)
    with grace.page.expect_response(lambda one: "/api/comment/" in one.url) as saved:
        grace.page.keyboard.press("Tab")
    assert saved.value.ok
    assert MISTAKE in grace.page.locator("body").inner_text()
    grace.shot("comments")
    grace.formgrader("manage_students")
    grace.page.locator("#main-table tr", has_text="emmy").wait_for()
    grace.shot("students")
    grace.formgrader("manage_assignments")
    assert "Wrote 2 pages" in grace.press(WORK, "generate-feedback", "feedback")
    assert "Releasing feedback for student 'emmy'" in grace.press(WORK, "release-feedback", "feedback_released")
    assert grace.trouble == []

    assert emmy.press("fetch_feedback", WORK)["success"]
    (submitted,) = emmy.listed("submitted")
    feedback = submitted["submissions"][0]["local_feedback_path"]
    page = emmy.read(f"{feedback}/{WORK}.html")["content"]
    assert "Look at what 3 is for &amp; why. &lt;b&gt;Grace&lt;/b&gt;" in page, "as it was written, and no markup"
    assert "You clip between 2 and 3" in page and "3 of 19 points" in page

    ada.assignments()
    ada.page.get_by_role("button", name="Fetch Feedback", exact=True).click()
    ada.page.get_by_text("(view feedback)").click()
    page = ada.page.locator(f".jp-DirListing-item[title^='Name: {WORK}.html']")
    ada.shot("feedback_folder")
    page.dblclick()
    frame = ada.page.frame_locator(".jp-HTMLViewer iframe")
    frame.get_by_text("19 of 19 points").first.wait_for()
    ada.shot("feedback")
    assert COMMENT.partition("<")[0] not in frame.locator("body").inner_text(), "that is emmy's"
    assert ada.trouble == []
