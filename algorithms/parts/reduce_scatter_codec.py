"""Owners: rank k owns part k of the vector. All send it their code of that part, and it answers all at once.

    everybody -> owner k    m_ik <- encode(part k of v_i)
    owner k -> everybody    a_k <- encode(u)        u <- mean over i of decode(m_ik) + E_k        E_k <- u - decode(a_k)

A ring would round again at each of its N - 1 stations; here every number is rounded twice, whatever N, and codes that
cannot be summed as they are can be used. With error feedback both roundings are made good: the sender's, e_i, by the
exchange, the owner's, E_k, here. All results so far, the mean of the e_i and the E_k together are all means so far.

Price: 2 (N-1)/N times the code of v per rank, as by the ring, in 2 rounds of messages, N - 1 at once in the first.
Source: Seide, Fu, Droppo, Li & Yu, Interspeech 2014, section 4.
"""

import math

import kernels
from kernels.arrays import shares

TO_THE_OWNER = 0x0E  # a tag that no algorithm uses


def through(comm, messages, merge):
    """Message k goes to rank k, which merges those of all, by rank, into one for everybody: these, by rank."""
    for ahead in range(1, comm.size):  # each begins with another owner, or all would queue at the first one's port
        owner = (comm.rank + ahead) % comm.size
        comm.send(messages[owner], owner, TO_THE_OWNER)
    mine = [messages[r] if r == comm.rank else comm.recv(r, TO_THE_OWNER) for r in range(comm.size)]
    return comm.all_gather(merge(mine))


class ReduceScatterCodec:
    """Means of vectors of which every part is coded on its own: `code(x, part) -> message`, `read(message, out, part)`.

    `part` is the slice of the vector that x is; a message is None where the code has no word for what x is.
    """

    def __init__(self, code, read, feedback: bool):
        self.code, self.read, self.feedback, self.error = code, read, feedback, None

    def mean(self, comm, v):
        """v <- the mean over the ranks; gives what this rank's own messages say."""
        parts = shares(len(v), comm.size)
        mine = parts[comm.rank]
        messages = [self.code(v[part], part) for part in parts]
        answers = through(comm, messages, lambda several: self._merged(several, v[mine], mine))
        self._read_all(answers, parts, v)
        return self._read_all(messages, parts, kernels.empty_like(v))

    def _merged(self, messages, like, mine):
        if any(message is None for message in messages):
            return None
        mean, part = kernels.empty_like(like), kernels.empty_like(like)
        self.read(messages[0], mean, mine)
        for message in messages[1:]:
            self.read(message, part, mine)
            kernels.add(mean, part)
        kernels.scale(mean, 1 / len(messages))
        if self.feedback and self.error is not None:
            kernels.add(mean, self.error)
        answer = self.code(mean, mine)
        if self.feedback and answer is not None:
            self.read(answer, part, mine)
            kernels.residual(mean, part)
            self.error = mean
        return answer

    def _read_all(self, messages, parts, out):
        for message, part in zip(messages, parts, strict=True):
            if message is None:
                out[part] = math.nan
            else:
                self.read(message, out[part], part)
        return out
