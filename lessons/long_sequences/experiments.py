"""Long sequences and experts: what a rank holds, and how long it waits, if ranks share attention or a mixture of
experts.
"""

import numpy as np

from algorithms.parts.sequence import visible_prefix
from kernels.arrays import shares
from lessons.figure import Look, column, figure, is_falling, ratio, value
from tracing import COMMUNICATE, HELD, WAIT

MS, KB, MB = 1e3, 1e-3, 1e-6
MACHINE = {
    "workload": "text", "width": 32, "heads": 4, "depth": 2, "batch": 1, "device": "2e11:1e15:0", "latency": 1e-8,
    "bandwidth": 4e9, "steps": 1, "evaluations": 1, "learning_rate": 0.1,
}  # fmt: skip
ACTIVATIONS = HELD.index("activations")
WEIGHTS = [HELD.index(kind) for kind in ("parameters", "gradients", "optimizer state")]


def seconds(done):
    """Return the virtual duration of the run, in s."""
    return done.summary["seconds"]


@figure(
    "What does doubling the length of a sequence cost?",
    source="Dao et al., NeurIPS 2022; Liu et al., arXiv:2310.01889",
    claims={
        "if all attention weights are kept, twice the positions take over three times the memory": lambda rows: (
            value(rows, "kB", positions=512, attention="all weights kept")
            > 3 * value(rows, "kB", positions=256, attention="all weights kept")
        ),
        "with merged blocks, twice the positions take twice the memory": lambda rows: all(
            abs(row["kB"] / row["positions"] / rows[1]["kB"] * rows[1]["positions"] - 1) < 0.01
            for row in rows
            if row["attention"] == "merged, 1 rank"
        ),
        "each of four ranks holds a quarter of what one rank with merged blocks holds": lambda rows: all(
            abs(4 * ratio(rows, "kB", positions=p, attention=("merged, 4 ranks", "merged, 1 rank")) - 1) < 0.01
            for p in LENGTHS
        ),
        "merging takes less than a quarter more operations than keeping all attention weights": lambda rows: all(
            1 < ratio(rows, "ms", positions=p, attention=("merged, 1 rank", "all weights kept")) < 1.25 for p in LENGTHS
        ),
    },
    look=Look("positions", ("kB",), "attention", log="xy", title="kB of activations on a rank"),
)
def square_of_the_length(run):
    """One step of a transformer with a single layer of attention on one sequence. `ms` is the duration of the step.

    `all weights kept`: the softmax is stored for the backward pass, a number for each head, query and key. `merged`:
    blocks of keys are combined by the online softmax, and the backward pass computes the weights again.
    """
    ways = {
        "all weights kept": {"algorithm": "sgd", "workers": 1},
        "merged, 1 rank": {"algorithm": "context", "workers": 1},
        "merged, 4 ranks": {"algorithm": "context", "workers": 4},
    }
    for positions in LENGTHS:
        for attention, settings in ways.items():
            done = run(**{**MACHINE, **settings, "context": positions})
            yield {
                "positions": positions,
                "attention": attention,
                "kB": KB * float(done.peaks()[:, ACTIVATIONS].max()),
                "ms": MS * seconds(done),
            }


LENGTHS = 64, 128, 256, 512


@figure(
    "How many positions per rank does it take to hide the ring's transfers?",
    source="a measurement of ours; Liu et al., arXiv:2310.01889, section 3",
    claims={
        "the exposed transfer time varies with the width by less than two percentage points": lambda rows: all(
            np.ptp(column(rows, "shown", positions=positions)) < 2 for positions in RING_POSITIONS
        ),
        "with 40 % of the positions that the formula asks for, over half of the transfer time is exposed": (
            lambda rows: all(shown > 50 for shown in column(rows, "shown", positions=32))
        ),
        "with 1.6 times the positions that the formula asks for, under a twentieth of the transfer time is exposed": (
            lambda rows: all(shown < 5 for shown in column(rows, "shown", positions=128))
        ),
    },
    look=Look("positions", ("shown",), "width", log="x", title="percent of the transfer time that is exposed"),
)
def positions_that_hide(run):
    """Ring attention on four ranks with zigzag positions. `shown` is how long a rank waits in the forward pass, as a
    percentage of the time that a block's three transfers take. `positions` is the number on one rank; heads have a
    width of 8.

    With the formula's 80 positions, a block travels for as long as a rank attends to it.
    """
    for width in (16, 32, 64):
        for positions in RING_POSITIONS:
            yield {"width": width, "positions": positions, "shown": transfers_shown(run, positions, width)}


RING_POSITIONS = 32, 64, 128, 256


def transfers_shown(run, positions, width=32, ranks=4, **values):
    """Return how long rank 0 waits in the forward pass, as a percentage of the transfer time. Each rank has `positions`
    positions.
    """
    values = {**MACHINE, "width": width, "heads": width // 8, **values}
    done = run(**{**values, "algorithm": "context", "workers": ranks, "context": ranks * positions})
    spans, labels = done.trace.spans, done.trace.labels
    mine = spans["rank"] == 0
    forward = mine & (spans["end"] <= spans["start"][mine & (spans["label"] == labels.index("loss"))][0])
    waited = forward & np.isin(spans["kind"], (COMMUNICATE, WAIT))
    sent = (ranks - 1) * 2 * 4 * values["batch"] * positions * width  # bytes
    return 100 * float((spans["end"] - spans["start"])[waited].sum()) / (sent / values["bandwidth"])


def places_of(kind, ranks, positions):
    """Return the positions of each rank, a list of arrays. `kind` is consecutive, zigzag or striped."""
    whole = np.arange(positions)
    if kind == "striped":
        return [whole[rank::ranks] for rank in range(ranks)]
    if kind == "consecutive":
        return [whole[piece] for piece in shares(positions, ranks)]
    halves = shares(positions, 2 * ranks)
    return [np.concatenate([whole[halves[rank]], whole[halves[-1 - rank]]]) for rank in range(ranks)]


KINDS = "consecutive", "zigzag", "striped"
RANKS, POSITIONS = 8, 4096


@figure(
    "How much does the busiest rank attend to in each hop of the ring?",
    source="Liu et al., arXiv:2310.01889; Brandon et al., arXiv:2311.09431; Grattafiori et al., section 3.3.2",
    claims={
        "with consecutive positions some rank attends to a whole block in every hop but the first": lambda rows: (
            column(rows, "busiest", positions="consecutive") == [0.5] + [1.0] * (RANKS - 1)
        ),
        "over all hops, the busiest ranks of consecutive positions attend to P - 1/2 blocks, and the mean is P/2": (
            lambda rows: (
                sum(column(rows, "busiest", positions="consecutive")) == RANKS - 0.5
                and abs(sum(column(rows, "mean", positions="consecutive")) - RANKS / 2) < 1e-9
            )
        ),
        "with zigzag positions every rank attends to half a block in every hop": lambda rows: (
            {*column(rows, "busiest", positions="zigzag")} == {0.5}
        ),
        "with stripes the busiest rank attends to half a block in every hop, within a hundredth": lambda rows: (
            max(column(rows, "busiest", positions="striped")) / 0.5 < 1.01
        ),
    },
    look=Look("hop", ("busiest",), "positions", kind="bar", title="fraction of a block, on the busiest rank"),
)
def busiest_in_each_hop(run):
    """Ring attention on eight ranks with 512 positions each, under a causal mask. In each hop of the ring a rank holds
    another block of keys, of which its queries may see a part.

    1 is all 512 times 512 pairs of a query and a key. `mean`: the mean over all ranks.
    """
    for kind in KINDS:
        places = places_of(kind, RANKS, POSITIONS)
        for hop in range(RANKS):
            work = [
                visible_prefix(places[rank], places[(rank - hop) % RANKS])[1] / (POSITIONS / RANKS) ** 2
                for rank in range(RANKS)
            ]
            yield {"positions": kind, "hop": hop, "busiest": max(work), "mean": float(np.mean(work))}


def busiest_over_mean(kind, starts, ranks=RANKS):
    """Return the busiest rank's number of query-key pairs, divided by the mean over ranks.

    Position i sees positions starts[i] to i. `starts`, (positions,), holds where the document of each position starts.
    """
    seen = np.arange(len(starts)) - starts + 0.5
    work = [seen[own].sum() for own in places_of(kind, ranks, len(starts))]
    return float(max(work) / np.mean(work))


def cut_into_documents(cuts, positions=POSITIONS):
    """Return where the document of each position starts, (positions,). `cuts` are the starts of all documents except
    the first.
    """
    starts = np.zeros(positions, int)
    starts[cuts] = cuts
    return np.maximum.accumulate(starts)


DRAWS = 100


@figure(
    "What if a sequence holds several documents?",
    source="a count of ours; Wang et al., arXiv:2503.17924; Grattafiori et al., section 3.3.2 (document mask)",
    claims={
        "with one document, zigzag positions and stripes are balanced within 1 %": lambda rows: (
            value(rows, "busiest", documents=1, positions="zigzag") < 1.01
            and value(rows, "busiest", documents=1, positions="striped") < 1.01
        ),
        "with four to 64 documents, zigzag positions give the busiest rank over 1.4 times the mean": lambda rows: all(
            value(rows, "busiest", documents=documents, positions="zigzag") > 1.4 for documents in (4, 16, 64)
        ),
        "with 64 documents, zigzag and consecutive positions are equally imbalanced, within a fifth": lambda rows: (
            0.8 < ratio(rows, "busiest", documents=64, positions=("zigzag", "consecutive")) < 1.2
        ),
        "with stripes the busiest rank is under a twentieth above the mean, whatever the documents": lambda rows: (
            max(column(rows, "busiest", positions="striped")) < 1.05
        ),
    },
    look=Look("documents", ("busiest",), "positions", log="x", title="busiest rank, relative to the mean"),
)
def documents_in_a_sequence(run):
    """A sequence that is cut into documents at random places, on eight ranks with 512 positions each. A position sees
    only its own document. `busiest` is the number of pairs on the busiest rank, as a multiple of the mean, averaged
    over 100 draws.
    """
    dice = np.random.default_rng(run.seed)
    for documents in (1, 2, 4, 16, 64, 256):
        draws = [
            cut_into_documents(1 + dice.choice(POSITIONS - 1, documents - 1, replace=False))
            for _ in range(DRAWS if documents > 1 else 1)
        ]
        for kind in KINDS:
            busiest = float(np.mean([busiest_over_mean(kind, starts) for starts in draws]))
            yield {"documents": documents, "positions": kind, "busiest": busiest}


def sent_by_a_rank(exchange, ranks, shared):
    """Return how many numbers a rank sends for one attention layer, forward and backward. The unit is samples x T x
    width, for sequences of T positions.

    `shared` query heads share a head of keys and values. In Ulysses, a rank needs at least one head of each.
    """
    if exchange == "ring":
        return (6 - 4 / ranks) / shared
    if exchange == "gather":
        return 4 * (ranks - 1) / ranks / shared
    return 4 * (1 + 1 / shared) * (ranks - 1) / ranks**2


@figure(
    "Which exchange sends least, if queries share their keys?",
    source="closed forms of ours; Ainslie et al., arXiv:2305.13245",
    claims={
        "with a key head for each query head, Ulysses sends a quarter of what the all-gather sends": lambda rows: (
            abs(ratio(rows, "sent", shared=1, exchange=("ulysses", "gather")) - 0.25) < 1e-9
        ),
        "with eight query heads to a key head, the all-gather sends less than Ulysses": lambda rows: (
            ratio(rows, "sent", shared=8, exchange=("gather", "ulysses")) < 0.9
        ),
        "the ring sends about half as much again as the all-gather": lambda rows: all(
            1.4 < ratio(rows, "sent", shared=shared, exchange=("ring", "gather")) < 1.6 for shared in SHARED
        ),
    },
    look=Look("shared", ("sent",), "exchange", log="xy", title="numbers sent by a rank, in samples x T x width"),
)
def keys_shared_by_heads(run):
    """One layer of attention on eight ranks, forward and backward. `shared` is the number of query heads that share a
    head of keys and values. (The text model has one for each.)
    """
    for exchange in ("ring", "gather", "ulysses"):
        for shared in SHARED:
            yield {"exchange": exchange, "shared": shared, "sent": sent_by_a_rank(exchange, RANKS, shared)}


SHARED = 1, 2, 4, 8, 16
MIXTURE = {**MACHINE, "experts": 8, "workers": 8, "context": 16, "capacity": 8, "latency": 1e-6}
WAYS = {
    "experts stay, tokens travel": {"algorithm": "expert"},
    "experts everywhere, summed": {"algorithm": "sync_sgd"},
    "experts everywhere, hidden": {"algorithm": "overlap"},
}


@figure(
    "Should tokens travel, or gradients of experts?",
    source="a comparison of ours; Lepikhin et al., arXiv:2006.16668",
    claims={
        "with 16 tokens on a rank, a step takes less than 0.7 times as long if tokens travel as if gradients do": (
            lambda rows: (
                ratio(rows, "ms", tokens=16, way=("experts stay, tokens travel", "experts everywhere, hidden")) < 0.7
            )
        ),
        "with 1,024 tokens on a rank, a step takes longer if tokens travel than if gradients do": lambda rows: (
            ratio(rows, "ms", tokens=1024, way=("experts stay, tokens travel", "experts everywhere, hidden")) > 1
        ),
        "with the formula's 1,024 tokens both ways send the same number of bytes, within a tenth": lambda rows: (
            abs(ratio(rows, "MB", tokens=1024, way=("experts stay, tokens travel", "experts everywhere, summed")) - 1)
            < 0.1
        ),
        "ranks with one expert each hold less than a quarter of what ranks with all experts hold": lambda rows: all(
            ratio(rows, "kB", tokens=t, way=("experts stay, tokens travel", "experts everywhere, summed")) < 0.25
            for t in TOKENS
        ),
    },
    look=Look("tokens", ("ms",), "way", log="xy", title="milliseconds of a step"),
)
def tokens_or_experts(run):
    """Eight ranks and eight experts, with 4 GB/s to each rank. Each token goes to one expert, and capacities are so
    large that no token is dropped.

    `tokens` are those of a rank. `hidden`: sums hide behind the backward pass. `kB`: the size of a rank's weights and
    gradients.
    """
    for tokens in TOKENS:
        for way, settings in WAYS.items():
            done = run(**{**MIXTURE, **settings, "batch": tokens // MIXTURE["context"]})
            yield {
                "tokens": tokens,
                "way": way,
                "ms": MS * seconds(done),
                "MB": MB * done.summary["bytes"],
                "kB": KB * float(done.peaks()[:, WEIGHTS].sum(axis=1).max()),
            }


TOKENS = 16, 64, 256, 1024


@figure(
    "Does a balance loss make experts equally busy?",
    source="Shazeer et al., ICLR 2017; Fedus et al., arXiv:2101.03961, section 2.2",
    claims={
        "with a balance loss, the busiest expert's load ends below 1.7 times an equal share": lambda rows: (
            value(rows, "busiest", steps="25 to 32", balance=0.1) < 1.7
        ),
        "a fair die would give the busiest expert over 1.3 times an equal share": lambda rows: (
            min(column(rows, "fair die")) > 1.3
        ),
        "with a balance loss, the busiest expert's load ends less than a fifth above that of a fair die": lambda rows: (
            value(rows, "busiest", steps="25 to 32", balance=0.1)
            < 1.2 * value(rows, "fair die", steps="25 to 32", balance=0.1)
        ),
        "ranks wait for less than 0.6 times as long with a balance loss as without": lambda rows: (
            ratio(rows, "waiting", steps="25 to 32", balance=(0.1, 0)) < 0.6
        ),
    },
    look=Look(
        "steps", ("busiest",), "balance", theory=("fair die",), kind="bar", title="busiest expert, in equal shares"
    ),
)
def straggler_of_data(run):
    """Eight ranks with one expert each train the text model for 32 steps. A rank has 128 tokens, and capacities are so
    large that no token is dropped.

    `busiest`: the number of a rank's tokens in a step that choose the most popular expert, as a multiple of an equal
    share. `fair die`: the same if each token threw a die. `waiting`: the percentage of the whole run in which ranks
    wait.
    """
    fair = busiest_by_chance(np.random.default_rng(run.seed), experts=8, each=16)
    for balance in (0, 0.1):
        settings = {"algorithm": "expert", "width": 16, "heads": 2, "context": 8, "batch": 16, "steps": 32}
        done = run(**{**MIXTURE, **settings, "balance": balance, "learning_rate": 1.0})
        course = np.asarray(done.course("imbalance")[1])
        for first in range(0, 32, 8):
            yield {
                "steps": f"{first + 1} to {first + 8}",
                "balance": balance,
                "busiest": float(course[first : first + 8].mean()),
                "fair die": fair,
                "waiting": 100 * done.summary["share_wait"],
            }


def busiest_by_chance(dice, experts, each, draws=400):
    """Return the busiest expert's number of tokens, divided by the mean. Each of `experts * each` tokens chooses an
    expert by a fair die.
    """
    counts = dice.multinomial(experts * each, [1 / experts] * experts, size=draws)
    return float(counts.max(axis=1).mean() / each)


def dropped_by_chance(dice, experts, each, capacity, draws=400):
    """Return the fraction of tokens that find their expert full, if tokens choose experts by a fair die. An expert
    takes at most `capacity` times an equal share.
    """
    counts = dice.multinomial(experts * each, [1 / experts] * experts, size=draws)
    return float(np.maximum(counts - np.ceil(capacity * each), 0).sum() / (draws * experts * each))


@figure(
    "How many tokens does it take to make experts equally busy by chance?",
    source="draws of ours; the estimate for the largest of E normal deviations",
    claims={
        "with 16 tokens for each of 64 experts, the busiest has over 1.5 times an equal share": lambda rows: (
            value(rows, "busiest", tokens=16, experts=64) > 1.5
        ),
        "with 1,024 tokens for each of 64 experts, the busiest has less than 1.1 times an equal share": lambda rows: (
            value(rows, "busiest", tokens=1024, experts=64) < 1.1
        ),
        "the more experts there are, the further the busiest one is above an equal share": lambda rows: all(
            is_falling(column(rows, "busiest", tokens=tokens)[::-1]) for tokens in EACH
        ),
        "the formula for the busiest expert is accurate within a fifth": lambda rows: all(
            abs(row["busiest"] / row["formula"] - 1) < 1 / 5 for row in rows
        ),
        "with 16 tokens per expert, a capacity of 1.25 drops over 1.5 % of all tokens; with 256, under 0.1 %": (
            lambda rows: (
                min(column(rows, "dropped", tokens=16)) > 1.5 and max(column(rows, "dropped", tokens=256)) < 0.1
            )
        ),
    },
    look=Look("tokens", ("busiest",), "experts", theory=("formula",), log="x", title="busiest expert, in equal shares"),
)
def evened_out_by_chance(run):
    """Tokens that choose their expert by a fair die, so that none is more popular than another. `tokens`: the number
    per expert on average. `dropped`: the percentage of the tokens that are dropped if an expert takes at most 1.25
    times an equal share.
    """
    dice = np.random.default_rng(run.seed)
    for experts in (8, 64, 256):
        for tokens in EACH:
            yield {
                "experts": experts,
                "tokens": tokens,
                "busiest": busiest_by_chance(dice, experts, tokens),
                "formula": float(1 + np.sqrt(2 * np.log(experts) / tokens)),
                "dropped": 100 * dropped_by_chance(dice, experts, tokens, 1.25),
            }


EACH = 4, 16, 64, 256, 1024
