"""WRITE: what the figures of this chapter are about."""

from lessons.figure import Look, column, figure


@figure(
    "WRITE: which question does it answer?",
    source="WRITE: author, year, section",
    claims={"the larger rate ends at a lower loss": lambda rows: column(rows, "loss")[0] > column(rows, "loss")[1]},
    look=Look("rate", ("loss",)),
)
def first(run):
    """WRITE: what the figure shows, and what a reader should look at."""
    for rate in (0.05, 0.1):
        done = run(algorithm="sync_sgd", workload="quadratic", workers=2, steps=20, learning_rate=rate, batch=1)
        yield {"rate": rate, "loss": done.summary["held_out_loss"]}
