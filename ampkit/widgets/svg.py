"""The few SVG shapes that the widgets are drawn with; their colours follow JupyterLab's theme where it is known."""

from __future__ import annotations

import html

from ampkit.show import BLUE, INK, MONO, PAPER, VERMILLION

__all__ = ["CURVE", "WIDTH", "cross", "opened", "text"]

WIDTH = 740  # of every drawing, in pixels
CURVE = f"var(--jp-brand-color1, {BLUE})"  # a blue that JupyterLab's dark theme makes lighter


def opened(height: int, alt: str) -> str:
    """The start of a drawing of WIDTH × height pixels with alt as its title and label; end it with "</svg>"."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{html.escape(alt)}" style="max-width:100%;font-family:system-ui,sans-serif">'
        f'<title>{html.escape(alt)}</title><rect width="{WIDTH}" height="{height}" rx="8" style="fill:{PAPER}"/>'
    )


def text(
    x: float,
    y: float,
    words: str,
    *,
    size: float = 13,
    anchor: str = "middle",
    ink: str = INK,
    bold: bool = False,
    mono: bool = False,
) -> str:
    """Words with their baseline at (x, y); anchor is SVG's "start", "middle" or "end"."""
    family = f"font-family:{MONO};" if mono else ""
    weight = "font-weight:700;" if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" style="fill:{ink};font-size:{size}px;{family}{weight}">'
        f"{html.escape(words)}</text>"
    )


def cross(x: float, y: float) -> str:
    """The mark of a skipped step: a cross of 10 pixels around (x, y)."""
    return (
        f'<path d="M{x - 5:.1f},{y - 5:.1f} l10,10 m0,-10 l-10,10" fill="none" '
        f'style="stroke:{VERMILLION};stroke-width:2.6"/>'
    )
