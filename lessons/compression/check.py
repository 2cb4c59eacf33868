"""Judge the worker of this chapter's exercise by the content of each message, the error owed afterwards, and the cost.

Everything that a rank sends passes through the grader's `Ledger`, which itself computes what the rank owes and where w
has to be. So only the solution's messages are used.
"""

import random
from math import inf

import numpy as np

from lessons.compression.exercise import TARGETS
from lessons.figure import run_now
from lessons.grading.contract import describe_value
from lessons.grading.grader import SolutionError
from lessons.grading.restricted import Restricted
from lessons.grading.seeds import experiment_seed

POINTS = {
    "every rank's step is the mean of what all ranks sent": 3,
    "a message holds the largest numbers": 3,
    "what was not sent is owed, and nothing else": 5,
    "it learns as much as from whole gradients": 4,
    "it sends no more than it must": 2,
    "it takes no longer than it must": 1,
    "where a sparse message would take more bytes than the whole vector, it sends the whole vector": 2,
}
CLOSE = {"rtol": 1e-3, "atol": 1e-6}  # orders of addition differ
OTHERWISE = "judged only when each rank sends a message of k numbers in every step"
UNTAUGHT = "judged only when every rank's step is the mean of what all ranks sent, in messages of k numbers"


def check(solution, seed):
    """Judge a solution on cases drawn with `seed`: yield (mark, whether it is earned, what was observed)."""
    steps_right, chosen, kept, learned, frugal, quick, dense = POINTS
    dice = random.Random(seed)
    workers = dice.randint(4, 5)
    values = {
        "algorithm": "sync_sgd", "workers": workers, "hidden": str(dice.randint(200, 320)), "network": "1GbE",
        "steps": dice.randint(110, 130), "learning_rate": 0.1, "evaluations": 1, "seed": experiment_seed(dice),
    }  # fmt: skip
    density = dice.choice([0.008, 0.01, 0.012])
    whole, textbook = run_now(**values), run_now(**values, compression="top_k", density=density)
    with solution.ranks(workers) as ranks:
        ledger, done = play(ranks, density, values, beside=textbook)
        wrong = ledger.absent or ledger.wrong
        yield steps_right, not wrong, wrong or f"{values['steps']} steps on {workers} ranks"
        told = f"messages of {ledger.k} numbers, the largest of the gradient or of what is owed"
        other = ledger.absent or ledger.other
        yield chosen, not other, other or told
        told = f"{ledger.sent:,} numbers sent, each with the value owed"
        few = not (ledger.absent or ledger.long)
        yield kept, few and not ledger.lost, (ledger.lost or told) if few else OTHERWISE
        for mark, quantity, target, other, of, judged, otherwise in (
            (learned, "held_out_loss", "loss", whole, "the loss of whole gradients", few and not wrong, UNTAUGHT),
            (frugal, "bytes", "traffic", textbook, "the bytes of the textbook's top-k", few, OTHERWISE),
            (quick, "seconds", "time", textbook, "the time of the textbook's top-k", few, OTHERWISE),
        ):
            part = done.summary[quantity] / other.summary[quantity] if judged else inf
            told = f"{part:.2f} times {of}; at most {TARGETS[target]} is allowed"
            yield mark, judged and part <= TARGETS[target], told if judged else otherwise
        density, some = dice.uniform(1.3, 2.5) / workers, {**values, "steps": 12}
        ledger, done = play(ranks, density, some)
        part = done.summary["bytes"] / run_now(**some).summary["bytes"]
        wrong = ledger.absent or ledger.wrong or ledger.lost
        told = f"{part:.2f} times the bytes of whole gradients at a density of {density:.2f}; 1 is possible"
        yield dense, few and not wrong and part <= TARGETS["traffic"], (wrong or told) if few else OTHERWISE


def play(ranks, density, values, beside=None):
    """Run the solution with each rank in its own process, and return (Ledger, Run)."""
    plays, ledger = [one.role("worker") for one in ranks], Ledger(len(ranks), density, values["learning_rate"])
    given, final = {"learning_rate": values["learning_rate"], "density": density}, {}

    def worker(comm, task, s):
        final[comm.rank] = plays[comm.rank](*ledger.wrap(comm, task), given)
        return ledger.books[comm.rank].w  # the shipped model; the solution's own is compared with it

    done = ranks[0].run(worker, beside=beside, **values)
    ledger.finish(final, values["steps"])
    return ledger, done


class Ledger:
    """A record of what every rank owes, and of what w must be after each step, computed from gradients and messages.

    Each field describes the first error of its kind, or is "". `absent` is about a step without an exchange, and
    `wrong` about a step that is not the mean of what was sent. The others are about a message: `other` if it lacks the
    largest numbers, `lost` if its numbers are not those owed, `long` if there are not k of them.
    """

    def __init__(self, size: int, density: float, rate: float):
        self.size, self.density, self.rate = size, density, rate
        self.absent = self.wrong = self.other = self.lost = self.long = ""
        self.books: dict[int, Book] = {}
        self.sent = self.k = 0

    def wrap(self, comm, task):
        """Return (comm, task) for a rank. The ledger records all calls of both."""
        book = self.books[comm.rank] = Book(self, comm, task)
        return (
            Restricted("comm", rank=comm.rank, size=comm.size, all_gather=book.all_gather, all_reduce=book.all_reduce),
            Restricted(
                "task", per_epoch=task.per_epoch, start=task.start, steps=task.steps, gradient=book.gradient,
                report=book.report,
            ),
        )  # fmt: skip

    def finish(self, final, steps: int):
        """Record the errors that show only at the end.

        These are missing exchanges or reports, and final parameters that differ from the ones that the messages imply.
        """
        if len(final) < self.size:
            self.note("absent", f"training was stopped after {self.books[0].reports} steps: its numbers are not finite")
            return
        for rank, book in self.books.items():
            if book.step < steps or book.waiting:
                self.note("absent", f"rank {rank} made {book.step - book.waiting} exchanges in {steps} steps")
            book.compare(final[rank], "returned")
        if self.books[0].reports < steps:
            self.note("wrong", f"rank 0 reported {self.books[0].reports} times in {steps} steps")

    def note(self, what: str, words: str) -> None:
        """Record `words` as the error of kind `what`, unless an error of that kind is recorded already."""
        if not getattr(self, what):
            setattr(self, what, words)


class Book:
    """The page of one rank in the ledger: it takes the place of the rank's comm and task, and records their calls."""

    def __init__(self, ledger: Ledger, comm, task):
        self.ledger, self.comm, self.task, self.rank = ledger, comm, task, comm.rank
        self.w = self.before = task.start()
        self.g, self.owed = np.zeros_like(self.w), np.zeros_like(self.w)
        ledger.k = self.k = max(1, round(ledger.density * len(self.w)))
        self.step = self.reports = 0  # gradients so far
        self.waiting = False  # for the exchange of the last gradient

    def gradient(self, w):
        if self.waiting:
            raise SolutionError(f"rank {self.rank} computed two gradients without an exchange between them.")
        self.compare(w, f"computed gradient {self.step} at")
        loss, self.g = self.task.gradient(self.w)
        self.g = self.g.copy()
        self.owed += self.g
        self.step, self.waiting = self.step + 1, True
        return loss, self.g.copy()

    def all_gather(self, message):
        index, values = self.parts(message)
        self.begins()
        if len(index) != self.k:
            words = f"rank {self.rank} sent {len(index)} numbers in step {self.step - 1}; {self.k} are required"
            self.ledger.note("long", words)
            self.ledger.note("other", words)
        elif not any(largest(what, index) for what in (self.owed, self.g)):
            self.ledger.note(
                "other", f"rank {self.rank} left out a number larger than one that it sent in step {self.step - 1}"
            )
        self.pay(index, values)
        messages = self.comm.all_gather((index, values))
        total = np.zeros(len(self.w))
        for places, numbers in messages:
            total[places] += numbers
        self.moves(total / self.comm.size)
        return messages

    def all_reduce(self, x, op="sum"):
        if op != "mean" or not isinstance(x, np.ndarray) or x.shape != self.w.shape:
            raise SolutionError('comm.all_reduce takes a vector as long as w here, and op="mean".')
        self.begins()
        words = f"rank {self.rank} sent a whole vector in step {self.step - 1}"
        self.ledger.note("long", words)
        self.ledger.note("other", f"{words}; {self.k} numbers are required")
        self.pay(np.arange(len(x)), x)
        mean = self.comm.all_reduce(x.astype(self.w.dtype), op="mean")
        self.moves(mean)
        return mean

    def report(self, w):
        if self.rank:
            raise SolutionError(f"rank {self.rank} reported w; only rank 0 reports.")
        self.compare(w, f"reported, after step {self.step - 1},")
        self.reports += 1
        self.task.report(self.w)

    def begins(self):
        if not self.waiting:
            raise SolutionError(f"rank {self.rank} sent something before the gradient of its step.")
        self.waiting = False

    def pay(self, index, values):
        """Subtract the sent `values` from what the rank owes at `index`. Record an error if they are not what it owes
        there.
        """
        off = np.flatnonzero(~np.isclose(values, self.owed[index], **CLOSE))
        if len(off):
            place = int(index[off[0]])
            self.ledger.note(
                "lost",
                f"rank {self.rank} sent {values[off[0]]:.3g} for number {place} in step {self.step - 1}, but owed "
                f"{self.owed[place]:.3g}",
            )
        self.ledger.sent += len(index)
        self.owed[index] -= values

    def moves(self, mean):
        self.before, self.w = self.w, (self.w - self.ledger.rate * mean).astype(self.w.dtype)

    def compare(self, w, what: str):
        """Record an error if a rank's `w` differs from the parameters that its messages imply.

        Raise SolutionError unless `w` is a vector of floats of the right length.
        """
        if not isinstance(w, np.ndarray) or w.shape != self.w.shape or w.dtype.kind != "f":
            given, size = describe_value(w), len(self.w)
            raise SolutionError(f"rank {self.rank} {what} {given}; expected w, a vector of {size} floats.")
        if not np.allclose(w, self.w, **CLOSE):
            away = float(np.abs(w - self.w).max())
            words = f"rank {self.rank} {what} a w that is up to {away:.2g} away from the one its messages imply"
            size = self.ledger.size
            if np.allclose(w - self.before, size * (self.w - self.before), **CLOSE):
                words += f": its step is {size} times theirs; is the sum divided by comm.size?"
            self.ledger.note("wrong", words)

    def parts(self, message):
        """Return the two parts of a message, (index, values). Raise SolutionError if the message is invalid."""
        if not (
            isinstance(message, tuple)
            and len(message) == 2
            and all(isinstance(part, np.ndarray) and part.ndim == 1 for part in message)
        ):
            raise SolutionError("comm.all_gather takes a tuple (index, values) of two arrays here.")
        index, values = message
        if len(index) != len(values) or index.dtype.kind not in "iu" or values.dtype.kind != "f":
            raise SolutionError(
                f"a message had an index of {index.dtype} of length {len(index)}, and values of {values.dtype} of "
                f"length {len(values)}; expected whole numbers and floats, the same number of each."
            )
        if len(index) and (index.min() < 0 or index.max() >= len(self.w) or len(np.unique(index)) < len(index)):
            raise SolutionError(f"the indices of a message must be distinct numbers from 0 to {len(self.w) - 1}.")
        return index, values


def largest(what, index) -> bool:
    """Return whether the numbers at `index` are the largest in magnitude, i.e. no number elsewhere is larger than the
    smallest of them.
    """
    sizes = np.abs(what)
    elsewhere = np.delete(sizes, index)
    return not len(elsewhere) or sizes[index].min() >= elsewhere.max() * (1 - 1e-4) - 1e-9
