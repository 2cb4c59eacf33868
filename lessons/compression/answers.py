"""Answers to the quiz on compression, from closed forms and from the chapter's own measurements."""

from math import ceil, log2

from lessons.compression.experiments import CODES, PLAIN, RATES, SIGNS, losses_by_rate, unlike_loss

MESSAGES = {
    "the hundredth": "top_k", "the sign": "one_bit", "a hundredth": "random_k", "each number, rounded at": "terngrad",
    "each": "int8",
}  # fmt: skip
VOTE, SIZES = "sign", "sign, sizes"
SHARES = {"hundredth": 0.01, "tenth": 0.1}


def thrown_away(run, message: str) -> str:
    """Compare training with a lossy code, without error feedback, to training with whole gradients.

    Return "alike" if the final losses are about the same, "worse" if the lossy code's is higher, and "nothing" if
    nothing is learned.
    """
    codec = next(name for begins, name in MESSAGES.items() if message.startswith(begins))
    whole, lossy = (
        run(**PLAIN, **code).summary["loss"] for code in ({}, {"compression": codec, "error_feedback": False})
    )
    if lossy is None or lossy > 2:  # None: diverged
        return "nothing"
    return "alike" if lossy < 1.5 * whole else "worse"


def waits(run, large: float) -> float:
    """Return the first step in which the smaller of a gradient's two numbers is sent.

    The gradient is the same in every step: the larger number is `large`, the smaller one 1. Each step sends only the
    number of which most is owed.
    """
    owed, step = [0.0, 0.0], 0
    while True:
        step += 1
        owed = [owed[0] + large, owed[1] + 1]
        if owed[1] > owed[0]:
            return step
        owed[0] = 0.0


def which_numbers(run, many: str) -> str:
    """Compare the final losses of Random-k and Top-k, both with error feedback.

    Return "random" or "largest", whichever ends at the lower loss, or "alike".
    """
    density = {"as many": 0.01, "a tenth as many": 0.001, "the four largest alone": 1.5e-4}.get(many, 1e-5)
    random, largest = (
        run(**PLAIN, compression=codec, density=share).summary["loss"]
        for codec, share in (("random_k", 0.01), ("top_k", density))
    )
    return "alike" if 1 / 1.5 < random / largest < 1.5 else "largest" if largest < random else "random"


def bits(run, levels: int) -> float:
    """Return by what factor QSGD shortens numbers of 32 bits, with one scale for every 512 numbers."""
    return 32 / (1 + ceil(log2(levels + 1)) + 32 / 512)


def break_even(run, workers: int, share: str) -> float:
    """Return the bytes of an all-gather of numbers and their indices, as a multiple of the bytes of a ring all-reduce
    of the whole gradient.
    """
    return SHARES[share] * workers


def noise(run, noise: float, workers: int, gradient: str) -> str:
    """Return whether the loss "falls", "grows" or stays at a "floor". Training is on a bowl of curvature 1 at a
    learning rate of 1/2.

    `noise` is the variance that the code adds to a gradient, relative to its squared norm. `gradient` says whether
    gradients are exact.
    """
    if 0.5**2 + 0.5**2 * noise / workers >= 1:
        return "grows"
    return "falls" if "exact" in gradient else "floor"


def sign_rate(run, sent: str) -> str:
    """Return the best learning rate for messages of this kind, relative to SGD's.

    The answer is "alike", "tenth" or "fiftieth".
    """
    part = 1 / 8 if "added up" in sent else best_rate(run, VOTE if "votes" in sent else SIZES) / best_rate(run)
    return "alike" if 1 / 4 <= part <= 4 else "fiftieth" if part <= 1 / 50 else "tenth"


def best_rate(run, code: str = "none") -> float:
    """Return the learning rate with the lowest loss for this code. It is one of the rates in the figure
    `sign_rates`.
    """
    losses = losses_by_rate(run, RATES[code], **SIGNS[code])
    return min(losses, key=lambda rate: losses[rate])


def pays(run, bandwidth: float, codec: str) -> str:
    """Return how a codec changes the speed of a step of eight workers, as in the figure `when_it_pays`.

    The answer is "slower", or a "little", "twice" or "much" for a step that is faster by that much.
    """
    name = "bf16" if "bf16" in codec else "power_sgd"
    plain, coded = (
        run(
            **PLAIN | {"steps": 2}, **code, workers=8, hidden="512,512", bandwidth=1e9 * bandwidth, latency=5e-6,
        ).summary["seconds"]
        for code in ({}, {"compression": name, **CODES[name]})
    )  # fmt: skip
    gain = plain / coded
    return "slower" if gain < 1 else "little" if gain < 1.8 else "twice" if gain < 2.5 else "much"


SENT = {
    "It throws": "the largest, the rest thrown away",
    "It owes": "the largest, the rest owed",
    "It sends": "the largest difference",
}


def unlike(run, message: str, gradient: str) -> str:
    """Return where the loss ends if the data of the four workers differ.

    The answer is "optimum", "floor" for a small remaining loss, or "sticks" for a large one. The learning rate is
    constant, and each message holds one number.
    """
    sent = next(name for begins, name in SENT.items() if message.startswith(begins))
    loss = unlike_loss(run, sent, 0.4, **({} if gradient == "exact" else {"noise": 1, "points": 4096}))
    return "optimum" if loss < 1e-6 else "floor" if loss < 0.3 else "sticks"
