"""What all charts share: the frame around a figure, and groups of ranks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import plotly.graph_objects as go

CONFIG = {"displayModeBar": False}
RANKS = 64  # rows and columns that can be told apart; more are drawn in groups


def frame(figure: go.Figure, x: str) -> None:
    figure.update_layout(
        margin={"l": 10, "r": 10, "t": 22, "b": 8},
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "title": {"text": ""}},
        dragmode="zoom",
    )
    figure.update_xaxes(title_text=x, title_standoff=8, rangemode="tozero", zeroline=False)
    figure.update_yaxes(title_text="", zeroline=False)


def grouped(table: np.ndarray, names: list[str], both: bool = False) -> tuple[np.ndarray, list[str]]:
    """Sum neighbouring ranks until there are at most RANKS rows (and columns)."""
    if len(table) <= RANKS:
        return table, names
    edges = np.linspace(0, len(table), RANKS + 1).astype(int)
    table = np.add.reduceat(table, edges[:-1], axis=0)
    if both:
        table = np.add.reduceat(table, edges[:-1], axis=1)
    return table, [f"{a}-{b - 1}" for a, b in pairwise(edges)]
