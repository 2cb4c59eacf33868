"""The layout that all charts have in common."""

import plotly.graph_objects as go

CONFIG = {"displayModeBar": False}


def frame(figure: go.Figure, x: str) -> None:
    figure.update_layout(
        margin={"l": 10, "r": 10, "t": 22, "b": 8},
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "title": {"text": ""}},
        dragmode="zoom",
    )
    figure.update_xaxes(title_text=x, title_standoff=8, rangemode="tozero", zeroline=False)
    figure.update_yaxes(title_text="", zeroline=False)
