"""Answers to the quiz on shared memory: closed forms, and the chapter's own measurements."""

from lessons.shared_memory import experiments


def lock(run, threads: int, held: float) -> float:
    """Return the speed-up of threads that hold a lock for `held` percent of a step."""
    return min(threads, 100 / held)


def meet(run, features: int, nonzeros: int) -> float:
    """Return the percentage of pairs of samples that have a feature in common."""
    return 100 * (1 - (1 - nonzeros / features) ** nonzeros)


def conflict(run, features: int, threads: int) -> float:
    """Return the percentage of coordinates that are in conflict if a sample has eight features."""
    return 100 * (1 - 1 / (1 + (threads - 1) * 8 / features))


def lost(run, threads: int, nanoseconds: int) -> float:
    """Return the percentage of additions that are lost if a step takes this many nanoseconds.

    A sample has 8 of 1,000 features, and 12 ns pass from load to store.
    """
    return 100 * (threads - 1) * 8 / 1000 * 12 / nanoseconds


def notice(run, kind: str) -> str:
    """Return how much farther from the minimum sixteen threads end than one, at a small learning rate: as far ("same"),
    farther by less than a factor of two ("some"), or more ("lost").
    """
    one, many = (experiments.gap(run, kind.partition(":")[0], threads, 0.25) for threads in (1, 16))
    behind = many / one - 1
    return "same" if behind < 0.05 else "some" if behind < 1 else "lost"


def descent(run, lost: int) -> float:
    """Return how many times as many samples the same descent needs if `lost` percent of the additions are lost."""
    return 1 / (1 - lost / 100)


def gathered(run, features: int, gathered: int) -> float:
    """Return how many coordinates are written per sample if `gathered` samples share a write. A sample has eight
    features.
    """
    return features * (1 - (1 - 8 / features) ** gathered) / gathered


def sharing(run, case: str) -> str:
    """Return how two threads interfere in this case: an addition is "lost", they share a cache "line", one reads
    "stale" values, or they do not interfere ("nothing").
    """
    begins = {"load the same": "lost", "write w": "line", "write coordinates": "nothing", "compute a": "stale"}
    return next(key for words, key in begins.items() if case.startswith(words))


LIMITS = {"At most 1 %": (0.01, 20), "At most 15 %": (0.15, 2000)}  # additions lost, and samples of age


def which(run, features: int, asked: str) -> str:
    """Return the method that writes least among those within the limits, by the closed forms.

    Of methods that write equally much, it is the one without waiting. `asked` names the limits.
    """
    if asked.startswith("Any"):
        return "svrg"  # at a constant rate the others stall
    most_lost, oldest = next(limits for begins, limits in LIMITS.items() if asked.startswith(begins))
    others, gather, plain = 15, 64, 15 * 8 / features / 10
    known = {  # writes per sample, whether threads wait, additions lost (for gathering an upper bound), and age
        "lock": (8, True, 0.0, others),
        "hogwild": (8, False, plain, others),
        "gather": (gathered(run, features, gather), False, plain, others * gather),
        "svrg": (features, False, 1.0, others),
    }
    allowed = [name for name, (_, _, lost, age) in known.items() if lost <= most_lost and age <= oldest]
    return min(allowed, key=lambda name: known[name][:2])
