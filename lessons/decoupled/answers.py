"""Answers to the quiz on decoupled learning, from closed forms and from the chapter's own measurements."""

from lessons.decoupled.experiments import at_best, errors, lately, races, stacks
from theory.delay import largest_rate


def step(run, method: str, modules: int) -> float:
    """Return the time of a step of `method` with equal modules, in ms.

    All forward passes together take 3 ms, and all backward passes 6 ms.
    """
    forward, backward = 3.0, 6.0
    return {
        "DDG, as it was published": forward + backward / modules,
        "DDG without its barrier": (forward + backward) / modules,
        "features replay, as it was published": forward + (forward + backward) / modules,
    }[method]


def late(run, modules: int, module: int) -> float:
    """Return how many updates `module` makes after a mini-batch's forward pass and before that mini-batch's own update.
    Modules are counted from 0.
    """
    return modules - 1 - module


def batches(run, modules: int) -> float:
    """Return how many activations DDG keeps, as a multiple of the whole model's activations for one mini-batch."""
    return sum(modules - module for module in range(modules)) / modules


def replayed(run, modules: int) -> float:
    """Return the computing time of a step of features replay, as a multiple of the computing time of a step of SGD.

    Modules are equal. A backward pass costs two forward passes, and the last module repeats no forward pass.
    """
    return 1 + (modules - 1) / modules / 3


def edge(run, modules: int) -> float:
    """Return the largest stable learning rate with fresh errors, as a multiple of the largest one with the first
    module's late errors.
    """
    return largest_rate(0) / largest_rate(modules - 1)


def stacked(run, learns: str) -> str:
    """Return how much accuracy is lost when a model is cut into eight modules instead of two.

    The answer is "alike", "little", or "loses" for a larger loss.
    """
    method, rates = stacks.STACKED["own loss" if "classifier" in learns else "guesses with labels"]
    two, eight = (stacks.best_of_rates(run, method, rates, modules)[0] for modules in (2, 8))
    return "alike" if eight > two - 0.03 else "little" if eight > two - 0.05 else "loses"


def angle(run, when: str, layers: str) -> str:
    """Return whether the angle between a step and the gradient is "right" (about 90 degrees), "acute" (clearly less),
    or "small".
    """
    steps = 0 if "first" in when else 300
    degrees = errors.angle(run, steps, direct=True, hidden="hidden" in layers)
    return "right" if abs(degrees - 90) < 10 else "acute" if 35 < degrees <= 80 else "small"


def race(run, method: str) -> str:
    """Compare the final loss of a method with the final loss of back-propagation after the same number of steps.

    Return "lower", "alike" or "higher".
    """
    name = {"old": "old errors", "losses": "own loss", "random": "random errors"}[method.split()[0]]
    ratio = _end(run, name) / _end(run, "back-propagation")
    return "lower" if ratio < 2 / 3 else "alike" if ratio < 4 / 3 else "higher"


def control(run, data: str, rival: str) -> str:
    """Compare the final loss of a model in which only the last module is trained with the final loss of a rival.

    Return "lower", "alike" or "higher".
    """
    frozen, other = (
        _end(run, method, spirals="spirals" in data)
        for method in ("frozen", "old errors" if "old" in rival else "back-propagation")
    )
    return "lower" if frozen < 2 / 3 * other else "alike" if frozen < 3 / 2 * other else "higher"


def _end(run, method, spirals=False):
    """Return the held-out loss of a method at its best learning rate, on the digits of the race or on spirals."""
    where, methods = (races.SPIRALS, races.ON_SPIRALS) if spirals else (races.RACING, races.RACE)
    values, rates = methods[method]
    return at_best(run, rates, **where, **values)[1].summary["held_out_loss"]


def cnn(run, method: str) -> str:
    """Compare the accuracy of a method on a CNN with the accuracy of back-propagation.

    Return "alike", "below" for a slightly lower accuracy, or "lost" for a much lower one.
    """
    name = "random errors" if "random" in method else "own loss"
    found = []
    for one in (name, "back-propagation"):
        values, rates = stacks.ON_IMAGES[one]
        found.append(lately(at_best(run, rates, **stacks.CNN, **values)[1], "accuracy"))
    below = found[1] - found[0]
    return "alike" if below < 0.05 else "below" if below < 0.08 else "lost"


def which(run, asked: str) -> str:
    """Return the only method that meets the requirement `asked`."""
    fits = {"no wire": "greedy", "after each": "pipeline", "errors that": "replay", "old errors": "ddg"}
    return next(key for begins, key in fits.items() if asked.startswith(begins))
