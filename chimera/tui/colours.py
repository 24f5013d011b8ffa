"""Styles that the stylesheet gives to parts of widgets which draw lines themselves."""

from __future__ import annotations

from collections.abc import Iterable

from rich.color import Color as RichColor
from rich.style import Style
from textual.color import Color
from textual.widget import Widget

__all__ = ["component_styles"]


def component_styles(widget: Widget, prefix: str, names: Iterable[str]) -> dict[str, Style]:
    """Return the style of each component class `prefix--name`, with colours blended onto the widget's background."""
    return {name: _style(widget, f"{prefix}--{name}") for name in names}


def _style(widget: Widget, component: str) -> Style:
    styles = widget.get_component_styles(component)
    ground = widget.background_colors[1]
    colour = _blended(ground, styles.color) if styles.has_rule("color") else None
    own = styles.has_rule("background") and styles.background.a > 0
    behind = _blended(ground, styles.background) if own else None
    return Style(color=colour, bgcolor=behind) + styles.text_style


def _blended(ground: Color, colour: Color) -> RichColor:
    return ground.blend(colour, colour.a, 1.0).rich_color
