"""Answers to the quiz on compression: closed forms, and the chapter's own measurements."""

from math import ceil, log2

from lessons.compression.experiments import CODES, PLAIN, RATES

MESSAGES = {"the hundredth": "top_k", "the sign": "one_bit", "each number, rounded at": "terngrad", "each": "int8"}
SHARES = {"hundredth": 0.01, "tenth": 0.1}


def thrown_away(run, message: str) -> str:
    """Return where the loss ends without error feedback."""
    codec = next(name for begins, name in MESSAGES.items() if message.startswith(begins))
    whole, lossy = (
        run(**PLAIN, **code).summary["loss"] for code in ({}, {"compression": codec, "error_feedback": False})
    )
    return "alike" if lossy < 1.5 * whole else "worse" if lossy < 2 else "nothing"


def waits(run, large: float) -> float:
    """Return the first step in which the smaller of two constant gradients is sent, one number a step."""
    owed, step = [0.0, 0.0], 0
    while True:
        step += 1
        owed = [owed[0] + large, owed[1] + 1]
        if owed[1] > owed[0]:
            return step
        owed[0] = 0.0


def which_numbers(run, many: str) -> str:
    """Return which numbers end lower, with error feedback: random ones, or the largest."""
    density = 0.01 if many == "as many" else 0.001
    random, largest = (
        run(**PLAIN, compression=codec, density=share).summary["loss"]
        for codec, share in (("random_k", 0.01), ("top_k", density))
    )
    return "alike" if 0.8 < random / largest < 1.25 else "largest" if largest < random else "random"


def bits(run, levels: int) -> float:
    """Return how many times fewer bits QSGD takes than 32 for each number, with a size for 512 numbers."""
    return 32 / (1 + ceil(log2(levels + 1)) + 32 / 512)


def break_even(run, workers: int, share: str) -> float:
    """Return the bytes of an all-gather of numbers and indices, as a multiple of those of a ring."""
    return SHARES[share] * workers


def noise(run, noise: float, workers: int) -> str:
    """Return what becomes of the loss on a bowl of curvature 1 at the rate 1/2."""
    return "falls" if 0.5**2 + 0.5**2 * noise / workers < 1 else "grows"


def sign_rate(run, sent: str) -> str:
    """Return where the best rate is, as a part of SGD's."""
    code = {"compression": "sign", "error_feedback": not sent.startswith("votes")}
    plain, signs = (
        min(RATES, key=lambda rate: run(**PLAIN | {"learning_rate": rate}, **one).summary["loss"]) for one in ({}, code)
    )
    return "alike" if 1 / 4 < signs / plain < 4 else "hundredth" if signs <= 0.011 * plain else "tenth"


def pays(run, bandwidth: float, codec: str) -> str:
    """Return how many times as fast a step of eight workers is with a codec, as in the figure `when_it_pays`."""
    name = "bf16" if "bf16" in codec else "power_sgd"
    plain, coded = (
        run(
            **PLAIN | {"steps": 2}, **code, workers=8, hidden="512,512", bandwidth=1e9 * bandwidth, latency=5e-6,
        ).summary["seconds"]
        for code in ({}, {"compression": name, **CODES[name]})
    )  # fmt: skip
    gain = plain / coded
    return "slower" if gain < 1 else "little" if gain < 1.8 else "twice" if gain < 2.5 else "much"
