"""Average encoded vectors: rank k owns part k, averages what all ranks send of that part, and sends the mean to all.

    rank i -> owner k       m_ik <- encode(part k of v_i)                                           (reduce-scatter)
    owner k -> all ranks    a_k <- encode(u)        u <- mean over i of decode(m_ik) + E_k              (all-gather)
                            E_k <- u - decode(a_k)

A ring would round at each of its N - 1 hops; here every element is rounded twice for any N, and codes that cannot be
summed as they are can be used. Error feedback corrects both roundings: the sender's, e_i, in
`error_feedback.ErrorFeedback`, and the owner's, E_k, here. The sum of all results so far, the mean of the e_i and the
E_k is the sum of all exact means so far.

Price: 2 (N-1)/N times the code of v per rank, as by the ring, in 2 rounds of messages, N - 1 at once in the first;
with feedback d/N elements of memory, E.
Source: Seide, Fu, Droppo, Li & Yu, Interspeech 2014, section 3.1.
"""

import math

import kernels
from kernels.arrays import shares

TO_OWNER = 0x0E  # a tag that no algorithm uses


def exchange_parts(comm, messages, merge):
    """Send message k to rank k, which merges the messages of all ranks, in rank order.

    Return all merged messages, by rank.
    """
    for ahead in range(
        1, comm.size
    ):  # each rank begins with another owner; otherwise all would queue at the first one's port
        owner = (comm.rank + ahead) % comm.size
        comm.send(messages[owner], owner, TO_OWNER)
    mine = [messages[r] if r == comm.rank else comm.recv(r, TO_OWNER) for r in range(comm.size)]
    return comm.all_gather(merge(mine))


class ReduceScatterCodec:
    """A codec that averages vectors part by part, with `encode(x, part) -> message` and `decode(message, out, part)`.

    x is the slice `part` of the vector; a message is None where x is not finite and the code cannot express that.
    With `feedback` the owner adds its own rounding error, `error`, to the next mean of its part.
    """

    def __init__(self, encode, decode, feedback: bool):
        self.encode, self.decode, self.feedback, self.error = encode, decode, feedback, None

    def mean(self, comm, v):
        """Replace v by the mean over the ranks; return the vector that this rank's own messages decode to."""
        parts = shares(len(v), comm.size)
        mine = parts[comm.rank]
        messages = [self.encode(v[part], part) for part in parts]
        answers = exchange_parts(comm, messages, lambda several: self._merged(several, v[mine], mine))
        self._decode_all(answers, parts, v)
        return self._decode_all(messages, parts, kernels.empty_like(v))

    def _merged(self, messages, like, mine):
        if any(message is None for message in messages):
            return None
        mean, part = kernels.empty_like(like), kernels.empty_like(like)
        self.decode(messages[0], mean, mine)
        for message in messages[1:]:
            self.decode(message, part, mine)
            kernels.add(mean, part)
        kernels.scale(mean, 1 / len(messages))
        if self.feedback and self.error is not None:
            kernels.add(mean, self.error)
        answer = self.encode(mean, mine)
        if self.feedback and answer is not None:
            self.decode(answer, part, mine)
            kernels.residual(mean, part)
            self.error = kernels.keep(mean) if self.error is None else mean
        return answer

    def _decode_all(self, messages, parts, out):
        for message, part in zip(messages, parts, strict=True):
            if message is None:
                out[part] = math.nan
            else:
                self.decode(message, out[part], part)
        return out
