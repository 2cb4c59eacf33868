"""DualPipe feeds the pipeline from both ends, and does a forward of one direction with a backward of the other.

Rank r of S holds stage r for the half that enters at rank 0 and stage S-1-r for the half that enters at the far end.
What a mixture of experts waits for in F hides behind the work of B; towards the ends the backward is split, and W fills
the holes. Both ranks that hold a stage sum their gradients before they update alike:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    rank 0   F0 f2 F1 b2 f3+B0 b3 I1 W1
    rank 1   F2 f0 F3 b0 f1+B2 b1 I3 W3        (capitals: the first half of the stages, small letters: the second)

Price: idle (S/2-1)(f&b + b - 3w) if f = i = w, for two copies of the weights and S+1 micro-batches held on every rank:
2 batch a per step over each boundary, and 2d to sum the gradients of d parameters. Staleness: none.
Source: DeepSeek-AI, arXiv:2412.19437, section 3.2.1; the steps are those of the authors' code.
"""

from algorithms.algorithm import Equivalence
from algorithms.parts.pipeline import settings
from algorithms.parts.pipeline.executor import Executor
from algorithms.parts.pipeline.plan import flush

SYNCHRONOUS = True
START = settings.START
EQUIVALENCES = (Equivalence("two directions are SGD", to="sgd", exactness="RND", workers=4, batch=8),)
Settings = settings.Flushed


def shards(workers, s):
    return 1


def plan(workers, s):
    return flush("dualpipe", workers, s.chunks)


def refuse(workers, batch, workload, s):
    return settings.refuse(batch, workload, plan(workers, s), s.cuts)


def words(shape, s):
    return plan(shape.workers, s).words(shape)


def worker(comm, task, s=Settings()):
    return Executor(comm, task, plan(comm.size, s), settings.rule(s), s.cuts).run()


if __name__ == "__main__":
    from experiments.cli.script import main

    main(__spec__.name)
