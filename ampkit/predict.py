"""`predict(...)`: the question that a learner answers before running the next cell."""

from __future__ import annotations

import html
import sys
from typing import Any

from ampkit.show import BLUE, FAINT, INK, Live

__all__ = ["Prediction", "predict"]

ASK = "Predict first, then run the next cell."
AFTER = "The cell below has the answer."
MISSED = "You ran on without a prediction. Choose one anyway: a wrong guess is what makes the answer stick."


class Prediction(Live):
    """One question with its options; `chosen` is the option that the learner clicked, or None.

    It can be changed until the next cell runs. Then it is closed, unless nothing was chosen yet.
    """

    def __init__(self, options: tuple[str, ...], question: str | None) -> None:
        self.options, self.question = options, question
        self.chosen: str | None = None
        self.closed = self.passed = False
        self._buttons: list[Any] = []
        self._says: Any = None
        super().__init__(_static(options, question), _plain(options, question), alt=question or ASK)
        self.widget = self._build()
        _before_next_cell(self._next_cell_runs)

    def choose(self, option: str) -> None:
        """Commits to an option. ValueError if there is no such option; a closed prediction stays as it was."""
        if option not in self.options:
            raise ValueError(f"There is no option {option!r}. Choose one of: {', '.join(self.options)}.")
        if not self.closed:
            self.chosen = option
        self._refresh(f"You said: {self.chosen}. {AFTER if self.passed else 'Now run the next cell and compare.'}")

    def _next_cell_runs(self) -> None:
        self.passed = True
        self.closed = self.chosen is not None
        self._refresh(f"You said: {self.chosen}. {AFTER}" if self.closed else MISSED)

    def _build(self) -> Any:
        try:
            import ipywidgets as widgets
        except ImportError:  # a plain Python without Jupyter still shows the question as text
            return None
        for option in self.options:
            button = widgets.Button(
                description=option,
                tooltip=f"Predict: {option}",
                layout=widgets.Layout(width="auto", height="auto", min_height="32px", margin="3px 6px 3px 0"),
            )
            button.on_click(lambda _, option=option: self.choose(option))
            self._buttons.append(button)
        self._says = widgets.HTML(_line(ASK))
        row = widgets.Box(self._buttons, layout=widgets.Layout(flex_flow="row wrap"))
        parts = [widgets.HTML(_heading(self.question))] if self.question else []
        box = widgets.VBox([*parts, row, self._says], layout=widgets.Layout(padding="0 0 0 12px"))
        box.layout.border_left = f"4px solid {BLUE}"
        return box

    def _refresh(self, words: str) -> None:
        if self._says is None:
            return
        for option, button in zip(self.options, self._buttons, strict=True):
            mine = option == self.chosen
            button.button_style = "primary" if mine else ""
            button.icon = "check" if mine else ""  # a mark besides the colour
            button.disabled = self.closed
        self._says.value = _line(words.strip())


def predict(*options: str, question: str | None = None) -> Prediction:
    """Asks the learner to commit to one of two or more `options`; make it the last line of a cell.

    In a live notebook the options are buttons. Without a kernel, or headless, the page lists them.
    ValueError: fewer than two options, or two that are the same.
    """
    if len(options) < 2 or len(set(options)) != len(options):
        raise ValueError("A prediction needs at least two different options, for example predict('zero', '1e-8').")
    return Prediction(tuple(str(option) for option in options), question)


def _before_next_cell(tell: Any) -> None:
    """Calls `tell` once, just before the next cell runs; does nothing outside of IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return

    def once(*_: Any) -> None:
        shell.events.unregister("pre_run_cell", once)
        tell()

    shell.events.register("pre_run_cell", once)


def _heading(question: str) -> str:
    return f'<div style="color:{INK};font-weight:600;line-height:1.5;max-width:900px">{html.escape(question)}</div>'


def _line(words: str) -> str:
    return f'<div role="status" style="color:{FAINT};line-height:1.5">{html.escape(words)}</div>'


def _static(options: tuple[str, ...], question: str | None) -> str:
    items = "".join(f"<li>{html.escape(option)}</li>" for option in options)
    heading = _heading(question) if question else ""
    return (
        f'<div style="border-left:4px solid {BLUE};padding-left:12px;color:{INK}">{heading}'
        f'<ol type="A" style="margin:0.3em 0">{items}</ol>{_line(ASK)}</div>'
    )


def _plain(options: tuple[str, ...], question: str | None) -> str:
    lines = [question] if question else []
    lines += [f"  {letter}. {option}" for letter, option in zip("ABCDEFGHIJ", options, strict=False)]
    return "\n".join([*lines, ASK])
