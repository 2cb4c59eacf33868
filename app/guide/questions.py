"""Questions that a student would ask, each with the run that answers it and a reference run.

The finding of a question is a fact about these two runs: `test_questions.py` makes both and checks every sentence
against their figures.
"""

from functools import cache
from typing import NamedTuple

from experiments.specification.experiment import Experiment


class Question(NamedTuple):
    """A question. `query` is the experiment that answers it, and `against` the experiment with which that is compared.
    Both are queries, where "" is the default experiment.

    `options` are two predictions; `right` is the index of the correct one. `axis` is the x axis of the curves on which
    the difference is visible.
    """

    asks: str
    options: tuple[str, str]
    right: int
    query: str
    finds: str
    axis: str
    against: str = ""

    @property
    def experiment(self) -> Experiment:
        return Experiment.from_query(self.query)

    @property
    def reference(self) -> Experiment:
        return Experiment.from_query(self.against)


QUESTIONS = (
    Question(
        "What if the network is slow?",
        ("The model gets worse", "Only the clock changes"),
        1,
        "network=1GbE",
        "On 1GbE the same steps take almost four times as long, nine tenths of it in communication. Only the clock "
        "changes: the model is the same, bit for bit.",
        "seconds",
    ),
    Question(
        "What does one straggler cost a synchronous step?",
        ("A quarter more time: it is one of four", "Twice the time: all wait for it"),
        1,
        "slow=3:4",
        "Every step waits for the slowest worker: with one of four at a quarter of its speed, all take twice as long. "
        "The model is the same, bit for bit.",
        "seconds",
    ),
    Question(
        "What if no worker waits for the straggler?",
        ("Twice the samples, with older gradients", "As many samples as before"),
        0,
        "algorithm=asgd&slow=3:4&seconds=0.1",
        "In the same tenth of a second asynchronous SGD processes twice as many samples. The price is staleness: "
        "a gradient is three updates old on average. Workers still wait for a third of their time, but not for each "
        "other: most of it is the network, and the rest is the server, which handles one gradient at a time.",
        "seconds",
        against="slow=3:4&seconds=0.1",
    ),
    Question(
        "Can we send 100 times fewer bytes?",
        ("Yes, for a point of accuracy at most", "No: accuracy falls by ten points or more"),
        0,
        "compression=top_k&density=0.0025",
        "Top-k sends the largest 0.25 % of a gradient, each number with its index, and keeps the rest for later: 100 "
        "times fewer bytes, and at the same learning rate an accuracy within one point.",
        "bytes",
    ),
    Question(
        "Must workers talk after every step?",
        ("Yes, or accuracy falls", "No: every ten steps will do"),
        1,
        "algorithm=local_sgd&period=10",
        "Local SGD averages the models after every ten steps: a tenth of the bytes, less than half the time, and at "
        "the same learning rate an accuracy within one point.",
        "bytes",
    ),
    Question(
        "Do more workers always help?",
        ("Sixteen are less than twice as fast as four", "Sixteen are four times as fast as four"),
        0,
        "workers=16&steps=50",
        "Sixteen workers process the same samples less than twice as fast as four, because they mostly communicate. "
        "They also make a quarter of the updates, so their loss stays higher, even at their best rate.",
        "seconds",
    ),
    Question(
        "Does it matter if gradients come late?",
        ("Twenty steps late, training takes a little longer", "Twenty steps late, training breaks down"),
        1,
        "algorithm=delayed&delay=20",
        "One step late does no harm. Twenty steps late, at the same learning rate, each step follows a gradient long "
        "out of date: steps overshoot, and accuracy ends below 25 %.",
        "step",
        against="algorithm=delayed&delay=1",
    ),
    Question(
        "Why does a pipeline idle?",
        ("With the batch in one piece, one stage works at a time", "Its messages are too long for the network"),
        0,
        "algorithm=gpipe&batch=256&steps=50&chunks=8",
        "A stage waits for the activations of the one before it, then for the errors of the one after it. With the "
        "batch in one piece, only one of four stages works at a time; split into eight, the stages overlap and take "
        "about half the time.",
        "seconds",
        against="algorithm=gpipe&batch=256&steps=50&chunks=1",
    ),
    Question(
        "What happens when a worker dies?",
        ("The others train on without it", "All of them stop"),
        1,
        "crash=2:0.04",
        "A synchronous step needs the gradient of every worker, so the loss of one at 40 ms stops all of them.",
        "step",
    ),
    Question(
        "Can training survive the loss of a worker?",
        ("Yes, if the others do not wait for it", "No: its share of the data is gone"),
        0,
        "algorithm=asgd&crash=2:0.04",
        "Asynchronous workers need only the server: the other three continue to their last step, and reach more "
        "than 90 % accuracy.",
        "step",
        against="crash=2:0.04",
    ),
)


OF_METHODS = (
    Question(
        "Two of eight workers lie: can the others still learn?",
        ("Yes, if they use medians instead of means", "No: every step contains the lies"),
        0,
        "algorithm=robust&workers=8&liars=2",
        "Liars send their gradients with the opposite sign and ten times the length. The mean follows them, and "
        "training diverges within ten steps. The median of each element ignores extremes, and training ends above "
        "90 % accuracy.",
        "step",
        against="algorithm=robust&workers=8&liars=2&aggregate=mean",
    ),
    Question(
        "Who waits for a slow worker in asynchronous DiLoCo?",
        ("Everybody, at every visit to the server", "Hardly anybody"),
        1,
        "algorithm=async_diloco&slow=3:3&seconds=0.1",
        "In DiLoCo all workers wait at each outer step for the one that is three times slower, for two fifths of "
        "their time. In asynchronous DiLoCo each visits the server when it is ready, and in the same tenth of a second "
        "they process almost three times as many samples. The price is staleness: the server moves almost three "
        "times between a worker's visits.",
        "seconds",
        against="algorithm=diloco&slow=3:3&seconds=0.1",
    ),
    Question(
        "NoLoCo averages only pairs: does a slow worker delay only its partner?",
        ("Yes: the other pairs continue", "No: in the end all of them wait"),
        1,
        "algorithm=noloco&slow=3:3",
        "Pairs change at every outer step, so a worker that met the slow one is late for its next partner. Soon all "
        "are as late as the slow one: the run takes almost three times as long, and they wait for almost half of it.",
        "seconds",
        against="algorithm=noloco",
    ),
    Question(
        "Does it save time to send a fragment while workers continue to train?",
        ("Yes: about a quarter on a slow network", "No: the same number of bytes is sent"),
        0,
        "algorithm=streaming_diloco&network=1GbE&overlap=8",
        "Streaming DiLoCo sends about as many bytes as DiLoCo, in two halves. While a half travels, workers take "
        "eight more inner steps: they communicate for 2 % of their time instead of 29 %, and the run "
        "takes a quarter less.",
        "seconds",
        against="algorithm=diloco&network=1GbE",
    ),
    Question(
        "What does SCAFFOLD pay for its control variates?",
        ("Nothing: they stay on the worker", "Twice the bytes"),
        1,
        "algorithm=scaffold",
        "In each round a worker sends its control variate with its model, and receives the common one. That is twice "
        "the bytes of federated averaging, and takes a third longer on this network.",
        "bytes",
        against="algorithm=scaffold&kind=average",
    ),
    Question(
        "CHOCO sends only a tenth of the parameters: can workers still move all the way to their neighbours' mean?",
        ("No: training breaks down", "Yes: they agree sooner"),
        0,
        "algorithm=choco&consensus=1",
        "Workers know only what their neighbours have sent: a tenth of the parameters per step, partly out of date. If "
        "they move two fifths of the way to the mean, training ends above 90 % accuracy; if they move all the way, the "
        "errors grow from step to step, and it ends below 25 %.",
        "step",
        against="algorithm=choco",
    ),
    Question(
        "Decoupled DiLoCo ends a round as soon as one worker is ready: does a slow worker hold up the others?",
        ("No: they hardly ever wait", "Yes: its model is part of the mean, too"),
        0,
        "algorithm=decoupled_diloco&slow=3:4&seconds=0.1",
        "The server merges what each worker has done so far, weighted by its steps. With a worker that is four times "
        "slower, all of them together process more than three times as many samples in a tenth of a second as in "
        "DiLoCo, whose workers wait for about half of their time.",
        "seconds",
        against="algorithm=diloco&slow=3:4&seconds=0.1",
    ),
    Question(
        "Each of four ranks has a quarter of every sequence: do all compute for the same time?",
        ("Yes: they have the same number of positions", "No: the last takes more than twice as long as the first"),
        1,
        "algorithm=context&positions=consecutive&context=256&batch=8&steps=20",
        "A position attends to all earlier ones, so the later a rank's quarter, the more it computes, and the ranks "
        "wait for 22 % of their time. If each has an early and a late eighth of every sequence (zigzag), none waits, "
        "and the run takes almost a fifth less.",
        "seconds",
        against="algorithm=context&context=256&batch=8&steps=20",
    ),
)
"""Questions about single algorithms, each offered while its algorithm is chosen; the path does not include them."""
ALL = (*QUESTIONS, *OF_METHODS)


@cache
def question_of(algorithm: str) -> Question | None:
    """Return the question about this algorithm alone, or None if it has none."""
    return next((one for one in OF_METHODS if one.experiment.algorithm == algorithm), None)


def find_question(experiment: Experiment) -> Question | None:
    """Return the question that this experiment answers, or None."""
    return _by_experiment().get(experiment.key())


@cache
def _by_experiment() -> dict[str, Question]:
    return {question.experiment.key(): question for question in ALL}
