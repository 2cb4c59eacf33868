"""Decoupled DiLoCo averages fragments at a server that waits for a quorum and takes unfinished work from the others.

Rank 0 serves the common model x, whose layers form K fragments. Each round updates one fragment, in turn. A worker
pushes that fragment H / K inner steps after its last push, or after the end of a round that it missed, and continues to
train. As soon as Q workers have pushed, the server asks the others for their fragments, however few steps they have
taken. The round ends when all have answered, or when a worker has taken `grace` steps since its push:

    p <- x - (sum of s_i w_i over all pushes) / (sum of s_i)
    v <- mu v + p        x <- x - outer_rate (p + mu v)        on every worker      w <- alpha w + (1 - alpha) x

applied to the fragment's part of each vector. Worker i has taken s_i steps since it last received this fragment. The
server sends the result to all workers. It drops a push that arrives after its round, so the steps of a worker that is
too late are lost. A worker keeps the share alpha of the steps that it took while a fragment travelled. It waits only if
the round has not ended tau steps after its push; the grace is at most tau, so it makes no worker wait. A worker that
returns after a crash asks for x. At the end, fragments that have changed get one more round.

The paper gives a worker that has processed n tokens in s steps the weight n (n / s), which is proportional to s if all
workers use the same batch size. In the paper, workers never wait, the grace is in seconds, and lengths and directions
are averaged separately; here an algorithm has no clock, and the mean is a plain one.

Price: 2 N d elements per period through the server's link, in messages 1/K as large; x, v and a mean on the server.
Staleness: none, since the mean includes only workers that have received every earlier round.
Source: Douillard et al., arXiv:2604.21428; the rule was compared with two independent programs and notes on its text.
"""

import kernels
from algorithms.algorithm import Algorithm, Equivalence, always, knob, one_server
from algorithms.parts.fragments import FragmentSettings, check_turns, fragments
from algorithms.parts.optimizers import optimizer

SERVER = 0
HELLO = -1  # sent by a worker that starts or returns; any other number in a message is that of a round


class Settings(FragmentSettings):
    outer_momentum: float = knob(
        0.3, "mu of the outer steps, the fraction of each step carried into the next", ge=0, lt=1
    )
    quorum: int = knob(1, "Q, number of workers that must push before a round may end", ge=1, le=4096)
    grace: int = knob(
        1, "inner steps after a worker's push for which the server waits for others", ge=0, le=9999, unit="steps"
    )
    weigh: bool = knob(True, "weight each worker by the number of steps it has taken, instead of equally")


def check(workers, batch, workload, s):
    check_turns(workload, s)
    if s.grace > s.overlap:
        raise ValueError(
            f"a grace of {s.grace} steps is too long: a worker takes at most {s.overlap} steps between its push and "
            f"the end of the round; use a grace of at most {s.overlap}, or a longer overlap."
        )
    if s.quorum > workers:
        raise ValueError(f"a quorum of {s.quorum} is more than the {workers} workers; use at most {workers}.")


def notes(e):
    if e.knobs.quorum == e.workers > 1:
        yield "A quorum of all workers waits for the slowest, as streaming_diloco does; use a smaller quorum."
    elif e.knobs.grace == 0 and e.workers > 1:
        yield (
            f"Without grace, a round ends with the first {e.knobs.quorum} to push, and what the others have learned "
            "about its fragment is lost; use a grace of at least 1."
        )


def worker(comm, task, s=Settings()):
    return server(comm, task, s) if comm.rank == SERVER else replica(comm, task, s)


def replica(comm, task, s):
    w = task.start()  # (d,)
    inner = optimizer(s.update, w, s.momentum)
    parts = fragments(task.layers, s.fragments, s.pattern)
    steps = [0] * len(parts)  # since this worker last received the fragment
    current, pushed = 0, False  # the round that this worker believes to be in progress; whether it has pushed in it
    since = s.overlap  # steps since its last push, as if it had pushed before the first step

    def push():
        nonlocal pushed, since
        part = current % len(parts)
        comm.send((current, steps[part], tuple(w[place] for place in parts[part])), SERVER)
        pushed, since = True, 0

    def react(message):
        """Handle a message from the server: push if the server asks for it, else adopt the fragment of an ended round,
        or all of x.
        """
        nonlocal current, pushed, since
        if not isinstance(message, tuple):
            if message == current and not pushed and steps[current % len(parts)]:
                push()
            return
        number, x = message
        if isinstance(x, tuple):
            part = number % len(parts)
            for place, piece in zip(parts[part], x, strict=True):
                kernels.mix(w[place], piece, s.own_share, 1 - s.own_share)
            steps[part] = 0
            since = since if pushed else 0
            current, pushed = number + 1, False
        else:
            w[:] = x
            steps[:] = [0] * len(parts)
            current, pushed, since = number, False, 0  # anything it pushed in the meantime was too late

    comm.send(HELLO, SERVER)
    for _ in task.steps():
        _, g = task.gradient(w)
        inner.step(w, g, s.learning_rate)
        steps = [taken + 1 for taken in steps]
        since += 1
        while SERVER in comm.poll():
            react(comm.recv(SERVER))
        if since >= s.turn and not pushed:
            push()
        if pushed and since == s.grace > 0:
            comm.send(current, SERVER)  # the server need not wait any more
        while pushed and since >= s.overlap:
            react(comm.recv(SERVER))
    while pushed or steps[current % len(parts)]:
        if not pushed:
            push()
        react(comm.recv(SERVER))
    comm.send(None, SERVER)  # no more pushes
    while comm.recv(SERVER) is not None:  # skip what the server sent before it knew
        continue
    return w


def server(comm, task, s):
    x = task.start()
    v, p = kernels.state_like(x), kernels.keep(kernels.zeros_like(x))
    parts = fragments(task.layers, s.fragments, s.pattern)
    training = set(range(1, comm.size))
    current, pushes = 0, {}  # the round; (steps, fragment) by rank
    asked, over = False, False  # whether the others were asked for their fragments; whether the grace is over

    def end_round():
        """Take an outer step on this round's fragment, towards the mean of the pushed fragments, and send the result to
        all workers.
        """
        places = parts[current % len(parts)]
        total = sum(steps if s.weigh else 1 for steps, _ in pushes.values())
        for place in places:
            p[place] = 0
        for _, (steps, pieces) in sorted(pushes.items()):
            for place, piece in zip(places, pieces, strict=True):
                kernels.mix(p[place], piece, 1.0, (steps if s.weigh else 1) / total)
        for place in places:
            kernels.displacement(p[place], x[place], p[place], 1.0)
            kernels.nesterov(x[place], v[place], p[place], s.outer_rate, s.outer_momentum)
        task.measure("merged", len(pushes))
        task.report(x)
        for rank in sorted(training):
            comm.send((current, tuple(x[place] for place in places)), rank)

    while training:
        sender, message = comm.recv_any()
        if message is None:  # it has ended, or is lost
            training.discard(sender)
            comm.send(None, sender)
        elif isinstance(message, tuple):
            if message[0] == current:
                pushes[sender] = message[1:]
        elif message == HELLO and current:
            comm.send((current, x), sender)
        elif message == current:
            over = True
        if pushes and len(pushes) >= min(s.quorum, len(training)):
            missing = training - pushes.keys()
            if over or not s.grace or not missing:
                end_round()
                current, pushes, asked, over = current + 1, {}, False, False
            elif not asked:
                for rank in sorted(missing):
                    comm.send(current, rank)
                asked = True
    return x


OF_ALL = {"quorum": 4, "overlap": 0, "grace": 0, "own_share": 0, "period": 4, "outer_momentum": 0.9}

ALGORITHM = Algorithm(
    worker, Settings, servers=one_server, check=check, notes=notes, deterministic=False, restartable=always,
    equivalences=(
        Equivalence(
            "a quorum of all workers and no overlap give streaming DiLoCo", to="streaming_diloco",
            exactness="RND", workers=4, settings=OF_ALL, to_settings={"overlap": 0, "own_share": 0, "period": 4},
        ),
        Equivalence(
            "one fragment that overwrites the workers' models gives DiLoCo", to="diloco",
            exactness="RND", workers=4, settings=OF_ALL | {"fragments": 1}, to_settings={"period": 4},
        ),
    ),
)  # fmt: skip
