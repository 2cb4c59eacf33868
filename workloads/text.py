"""Text: a transformer reads a text character by character, and predicts the next character at each position.

The text is Lewis Carroll's Alice's Adventures in Wonderland, 144,339 characters of 69 kinds, or a `file` of your own.
A sample is `context` characters in a row and the character after each, so an epoch sees every character once. The last
tenth is held out; a model is evaluated on samples evenly spread over it, 8,192 characters in total. Losses are in nats
per character: the entropy of single characters is 3.15, and 2.43 given the previous character. Accuracy is the fraction
of characters predicted correctly. With `experts`, the MLP blocks are mixtures of experts (`experts.py`).
Source: texts/README.md.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import kernels
from knobs import knob
from workloads import transformer
from workloads.experts import MoeBlock
from workloads.sequential import Sequential
from workloads.supervised import Supervised
from workloads.workload import DataKnobs

ALICE = Path(__file__).parent / "texts" / "alice.txt"
MOST_BYTES = 20_000_000
EVALUATED = 8192  # number of characters on which a model is evaluated, however long the text is
PLAIN = {"experts": (0,)}  # with which settings of experts have no effect
MOST_KINDS = 1000  # largest number of different characters, each of which has a logit at every position


class Settings(DataKnobs):
    """The settings: the context and size of the model, and the text that it reads."""

    context: int = knob(
        16, "context length: number of characters the model can look back on", ge=2, le=1024, unit="characters"
    )
    width: int = knob(32, "numbers per position", ge=1, le=2048, unit="numbers")
    heads: int = knob(4, "attention heads; they must divide the width", ge=1, le=64, unit="heads")
    depth: int = knob(2, "number of blocks, alternating attention and MLP", ge=1, le=128, unit="blocks")
    experts: int = knob(
        0, "experts in each MLP block; each character is sent to a few of them; 0 for plain MLPs",
        ge=0, le=64, unit="experts",
    )  # fmt: skip
    chosen: int = knob(1, "experts that each character chooses", unless=PLAIN, ge=1, le=8, unit="experts")
    capacity: float = knob(
        1.25, "characters that an expert takes in training, as a multiple of an equal share", unless=PLAIN, gt=0, le=64
    )
    balance: float = knob(
        0.01,
        "weight of the balance loss, which makes characters choose all experts equally often",
        unless=PLAIN,
        ge=0,
        le=10,
    )
    file: str = knob("", "text file of your own (UTF-8); empty is Alice in Wonderland", max_length=4096, local=True)


def build(settings: Settings, dtype=np.float32) -> Supervised:
    """Return the workload. Raise ValueError if the text cannot be read or the model cannot be built."""
    s = settings
    text = read(Path(os.path.expanduser(s.file)) if s.file else ALICE)  # Path's own raises for ~nobody
    kinds, tokens = np.unique(np.frombuffer(text.encode("utf-32-le"), "<u4"), return_inverse=True)
    held_out = len(tokens) // 10
    if len(kinds) > MOST_KINDS:
        raise ValueError(
            f"text: {s.file} has {len(kinds):,} different characters, far more than an alphabet; use a text with at "
            f"most {MOST_KINDS:,}."
        )
    if held_out <= s.context:
        raise ValueError(
            f"text: {s.file or ALICE.name} has {len(tokens):,} characters, but context {s.context} needs at least "
            f"{10 * (s.context + 1):,}; use a longer text or a smaller context."
        )
    block = _mixture(s) if s.experts else None
    layers = transformer.layers(len(kinds), s.context, s.width, s.heads, s.depth, block)
    model = Sequential(layers, kernels.softmax_cross_entropy, dtype)
    x, target = samples(tokens[-held_out:], s.context)
    some = np.linspace(0, len(x) - 1, min(len(x), max(1, EVALUATED // s.context))).astype(int)
    train, alphabet = samples(tokens[:-held_out], s.context), tuple(map(chr, kinds))
    return Supervised("text", model, train, (x[some], target[some]), labels=alphabet)


def _mixture(s: Settings) -> Callable[[int, int, float], MoeBlock]:
    """Return a function that builds a block of experts. Raise ValueError if there are too few experts."""
    if s.chosen > s.experts:
        raise ValueError(
            f"text: each character chooses {s.chosen} of {s.experts} experts; use at least {s.chosen} experts, or let "
            "it choose fewer."
        )
    return partial(MoeBlock, experts=s.experts, chosen=s.chosen, capacity=s.capacity, balance=s.balance)


def samples(tokens: np.ndarray, context: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (x, target), (n, context) each. x has the `tokens` in pieces of length `context`, and `target` the token
    after each token.
    """
    n = (len(tokens) - 1) // context
    return tokens[: n * context].reshape(n, context), tokens[1 : n * context + 1].reshape(n, context)


def read(path: Path) -> str:
    """Return the text in a file, with universal newlines. Raise ValueError if it cannot be read."""
    try:
        if not path.is_file():
            raise ValueError(
                f"text: there is no file {path}; set file to the path of the text, or leave it empty for Alice."
            )
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(
                f"text: {path} has {path.stat().st_size:,} bytes; use a part of it, of at most {MOST_BYTES:,}."
            )
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ValueError(f"text: {path} cannot be read: {error.strerror}; set file to another path.") from None
    except UnicodeDecodeError as error:
        raise ValueError(
            f"text: {path} is not UTF-8 text: byte {error.start:,} is {error.object[error.start]:#04x}; "
            "save it as UTF-8, or use another file."
        ) from None
