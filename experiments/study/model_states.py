"""Memory of a model on each rank, by precision and ZeRO stage, as a table to print."""

from experiments.wording import units
from theory.zero_memory import RECIPES, STAGES, nbytes

LEFT_OUT = (
    "Activations are not counted: they depend on batch size, sequence length and recomputation. Neither are "
    "temporary full tensors: one layer's gradient in ZeRO-2 and 3, and one layer's parameters in ZeRO-3."
)


def sizes(parameters: float, ranks: int) -> dict[str, list[float]]:
    """Return the memory per rank in bytes: for each precision and optimizer, a list with a value for each ZeRO
    stage.
    """
    return {name: [nbytes(parameters, ranks, stage, recipe) for stage in STAGES] for name, recipe in RECIPES.items()}


def rows(parameters: float, ranks: int) -> list[dict[str, str]]:
    """Return `sizes` as a table: bytes for a parameter, its gradient and its optimizer state, then bytes per rank."""
    return [
        {"states": name, "bytes": "+".join(map(str, RECIPES[name]))}
        | {stage: units.size(size) for stage, size in zip(STAGES.values(), found, strict=True)}
        for name, found in sizes(parameters, ranks).items()
    ]
