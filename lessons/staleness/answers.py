"""Answers to the quiz on staleness, computed by the simulator or by closed forms that it is tested against."""

from cluster.network import NETWORKS
from lessons.staleness.ensemble import mean_course
from lessons.staleness.experiments import BOWL, DIGITS, NOTHING, TIMES, end_loss, slow, time_of
from lessons.staleness.experiments.bounds import until_it_reads
from lessons.staleness.experiments.delays import critical_rate, try_rates
from lessons.staleness.experiments.momentum import MOMENTA, fit, progress


def shared_out(run, workers: int, rate: float) -> str:
    """Return how the final loss changes if many workers share the gradients that one worker would compute: "same",
    "worse", or "nothing" if they learn nothing.
    """
    alone, many = (
        end_loss(run(algorithm="asgd", workers=n, learning_rate=rate, steps=1536 // n, **DIGITS)) for n in (1, workers)
    )
    if many > NOTHING:
        return "nothing"
    return "same" if many < 1.4 * alone else "worse"


def mean_age(run, workers: int, slowest: int) -> float:
    """Return the mean staleness of gradients if the slowest worker takes `slowest` times as long as the fastest."""
    return float(_staleness(run, workers, "cloud", 1500, slowest).mean())


def fresh(run, workers: int) -> float:
    """Return the percentage of gradients with staleness 0 if workers' times are exponential."""
    return 100 * float((_staleness(run, workers, "exponential", 6000) == 0).mean())


def _staleness(run, workers, jitter, gradients, slowest=1):
    where = {"slow": slow(workers, slowest), "jitter": jitter, "seconds": time_of(run, gradients / workers, 1)}
    done = run(algorithm="asgd", workers=workers, learning_rate=0.01, dimension=1, **where, **BOWL)
    return done.applied["staleness"][10 * workers :]


def critical(run, workers: int) -> float:
    """Return the largest stable learning rate on curvature 1 if workers take turns."""
    return critical_rate(try_rates(run, workers, 2.5 / workers, 1.25 / workers, steps=400))


def best_bound(run, times: str) -> str:
    """Return the best bound on how many steps a worker may run ahead of the slowest: "none" (0), "one" or "far" (16).

    Return "all one" if the choice hardly matters.
    """
    seconds = [until_it_reads(run, times, bound)[0] for bound in (0, 1, 16)]
    if max(seconds) < 1.6 * min(seconds):
        return "all one"
    return ("none", "one", "far")[seconds.index(min(seconds))]  # of these, the quiz offers only the last


def divided(run, workers: int, rule: str) -> str:
    """Return how far workers get with 100 gradients each: as far as the gradients of "one" worker, as "all" of them in
    turn, or "nothing".

    Gradients are divided by their staleness, or not, as `rule` says.
    """
    algorithm = "dynsgd" if rule.startswith("divides") else "asgd"
    values = {"algorithm": algorithm, "learning_rate": float(rule.split()[-1]), **DIGITS}
    many, one, all_in_turn = (
        end_loss(run(workers=n, steps=steps, **values)) for n, steps in ((workers, 100), (1, 100), (1, 100 * workers))
    )
    if many > NOTHING:
        return "nothing"
    return "one" if abs(many - one) < abs(many - all_in_turn) else "all"


def momentum(run, workers: int) -> float:
    """Return the implicit momentum of asynchronous SGD with workers whose times are exponential."""
    return float(fit(mean_course(run.seed, workers, 1.2 / workers, TIMES["exponential"], 16, 200))[0])


def added(run, workers: int) -> str:
    """Return how much momentum the server should add for the fastest progress: "none", "little" or "much"."""
    best = max(MOMENTA, key=lambda momentum: progress(run, workers, momentum))
    missing = best - (1 - 1 / workers)
    return "none" if missing < 0.09 else "much" if missing > 0.5 else "little"


def fed(run, megabytes: int, seconds: float) -> float:
    """Return how many workers one server can feed over 10 Gb Ethernet."""
    return NETWORKS["10GbE"].between.bandwidth * seconds / (1e6 * megabytes)
