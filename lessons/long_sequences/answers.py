"""Answers to the quiz on long sequences and experts, computed by the simulator or by closed forms."""

import numpy as np

from lessons.long_sequences.experiments import (
    busiest_by_chance,
    busiest_over_mean,
    cut_into_documents,
    sent_by_a_rank,
    transfers_shown,
)


def merged(run, weight: int, value: int) -> float:
    """Return the attention output after two blocks of keys are merged.

    The first block has two keys of score 0 and value 1. The second has one key of score log(weight), whose value is
    `value`.
    """
    most, before, total, y = np.log(weight), 0.0, 2.0, 2.0
    shrink = np.exp(before - max(most, before))
    fresh = np.exp(most - max(most, before))
    return float((shrink * y + fresh * value) / (shrink * total + fresh))


def masks(run, mask: str) -> str:
    """Return the placement of positions that balances the work under this mask: "zigzag", "striped" or "both".

    Balanced means that the busiest of eight ranks has less than a tenth more work than the mean.
    """
    positions = 4096
    starts = {
        "lets a position see all earlier ones": np.zeros(positions, int),
        "lets a position see the earlier ones of its own document, of which the sequence has three: of 3,000, 500 and "
        "596 positions": cut_into_documents(np.array([3000, 3500])),
        "lets a position see the earlier ones of its own sentence, and each sentence has four positions": (
            np.arange(positions) // 4 * 4
        ),
    }[mask]
    even = [kind for kind in ("zigzag", "striped") if busiest_over_mean(kind, starts) < 1.1]
    return even[0] if len(even) == 1 else "both"


def hidden(run, tera: int, shared: str) -> float:
    """Return how many positions a rank needs to hide the ring's transfers behind its attention.

    Pieces are zigzag, numbers have 16 bits, and the GPU receives 50 GB/s.
    """
    return 4 * 2 / 4 / heads_that_share(shared) * tera * 1e12 / 50e9


def heads_that_share(words: str) -> int:
    """Return how many query heads share each head of keys and values."""
    return {"every": 1, "eight": 8, "sixteen": 16}[words.split()[0]]


def change(run, change: str) -> str:
    """Return how a change affects the exposed share of a forward pass's transfer time: "less", "more" or "same"."""
    changed = {
        "the model gets twice the width, with twice as many heads": {"width": 64},
        "there are twice as many sequences in a mini-batch": {"batch": 2},
        "the sequences become twice as long": {"positions": 64},
        "twice as many ranks share the same sequences": {"positions": 16, "ranks": 8},
        "the links become twice as fast": {"bandwidth": 8e9},
        "the processors become twice as fast": {"device": "4e11:1e15:0"},
    }[change]
    before, after = (transfers_shown(run, **{"positions": 32, **values}) for values in ({}, changed))
    return "same" if abs(after - before) < 3 else "less" if after < before else "more"


def sends(run, ranks: int, shared: str) -> str:
    """Return the exchange that sends the fewest numbers: "ring", "gather" or "ulysses"."""
    return min(
        ("ring", "gather", "ulysses"), key=lambda exchange: sent_by_a_rank(exchange, ranks, heads_that_share(shared))
    )


def tokens(run, experts: int, width: int, times: int) -> float:
    """Return the number of tokens on a rank at which two amounts of data are equal: what sending the tokens to experts
    takes, and what summing the gradients of all experts takes.
    """
    return 2 * 2 * width * times * experts / (4 * width)


def fair(run, experts: int, each: int) -> float:
    """Return the load of the busiest expert, as a multiple of an equal share, if tokens choose experts at random."""
    return busiest_by_chance(np.random.default_rng(run.seed), experts, each)


def full(run, share: str, capacity: float) -> float:
    """Return the percentage of tokens that find their expert full. One of eight experts attracts `share` of all
    tokens.
    """
    attracted = {"a quarter": 1 / 4, "half": 1 / 2}[share]
    others = (1 - attracted) / 7
    return 100 * (max(0.0, attracted - capacity / 8) + 7 * max(0.0, others - capacity / 8))
