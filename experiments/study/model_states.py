"""What a model takes on a rank, by precision and by stage of ZeRO, in words and numbers that people read."""

from __future__ import annotations

from experiments import units
from theory.zero_memory import RECIPES, STAGES, nbytes

LEFT_OUT = (
    "Activations are not counted; they depend on batch, sequence and recomputation. Nor is what is whole for a moment: "
    "one layer's gradient from ZeRO-2 on, and its parameters at ZeRO-3."
)


def sizes(parameters: float, ranks: int) -> dict[str, list[float]]:
    """Return bytes per rank, a list of ZeRO's stages for each precision and optimizer."""
    return {name: [nbytes(parameters, ranks, stage, recipe) for stage in STAGES] for name, recipe in RECIPES.items()}


def rows(parameters: float, ranks: int) -> list[dict[str, str]]:
    """Return the same as a table: bytes of a parameter, its gradient and its optimizer state, then bytes per rank."""
    return [
        {"states": name, "bytes": "+".join(map(str, RECIPES[name]))}
        | {stage: units.size(size) for stage, size in zip(STAGES.values(), found, strict=True)}
        for name, found in sizes(parameters, ranks).items()
    ]
