"""Links and event log streams: what real ranks are made of, in one process."""

import contextlib
import math
import pickle
import signal
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cluster.real.event_log_stream import MergedEventLogs, StreamedEventLog
from cluster.real.failure import Failure, rank_lost
from cluster.real.links import Links, PeersGone
from cluster.real.listener import Listener
from tracing import COMMUNICATE, UPDATE, WAIT


def hang_up(end):
    """Shut a socket down before it is closed: a reader blocked in it would go on with whatever gets its number next."""
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@pytest.fixture
def pair():
    ends = socket.socketpair()
    yield [Links(rank, {1 - rank: end}, lambda *_: None) for rank, end in enumerate(ends)]
    for end in ends:
        hang_up(end)


def take(links, src, channel="c"):
    slot = links.slot(src, channel)
    assert links.wait(slot, [src], 10.0)
    return slot.envelope


def test_a_sender_never_waits_for_a_receiver_that_does_not_read():
    ours, theirs = socket.socketpair()
    links = Links(0, {1: ours}, lambda *_: None)
    x = np.arange(4_000_000)
    tickets = [links.send(1, "c", x, 0.0) for _ in range(3)]  # nobody reads yet
    x[:] = -1
    receiver = Links(1, {0: theirs}, lambda *_: None)
    assert all(np.array_equal(take(receiver, 0).x, np.arange(4_000_000)) for _ in range(3))
    links.flush(tickets[-1])
    hang_up(ours)
    hang_up(theirs)


def test_the_first_tensor_arrives_on_the_receivers_device_as_all_others_do():
    torch = pytest.importorskip("torch")
    ours, theirs = socket.socketpair()
    links, receiver = Links(0, {1: ours}, lambda *_: None), Links(1, {0: theirs}, lambda *_: None, "cpu:0")
    for _ in range(2):
        links.send(1, "c", torch.arange(3), 0.0)
        received = take(receiver, 0).x
        assert isinstance(received, torch.Tensor) and received.tolist() == [0, 1, 2]
    hang_up(ours)
    hang_up(theirs)


def test_a_stranger_is_not_let_in():
    listeners = [Listener("127.0.0.1") for _ in range(2)]
    addresses = [listener.address for listener in listeners]
    with socket.create_connection(addresses[0][:2]) as stranger, ThreadPoolExecutor() as pool:
        stranger.sendall(b"I am rank number one")
        connections = [pool.submit(listener.connect, rank, addresses, 10.0) for rank, listener in enumerate(listeners)]
        (link,), (other,) = (list(connection.result().values()) for connection in connections)
        assert link.getpeername() == other.getsockname()
        assert stranger.recv(1) == b""
        hang_up(link)
        hang_up(other)


def meet(listeners, timeout=60.0):
    """The sockets by which the ranks of `listeners` meet, rank by rank."""
    addresses = [listener.address for listener in listeners]
    with ThreadPoolExecutor() as pool:
        waits = [pool.submit(listener.connect, rank, addresses, timeout) for rank, listener in enumerate(listeners)]
        return [wait.result() for wait in waits]


def test_silent_strangers_and_a_slow_speaker_keep_nobody_waiting(monkeypatch):
    listeners = [Listener("127.0.0.1") for _ in range(2)]
    host, port, token = listeners[0].address
    strangers = [socket.create_connection((host, port)) for _ in range(14)]  # each has come before rank 1
    strangers[0].sendall(token[:7])  # and this one goes no further
    monkeypatch.setattr(socket.socket, "settimeout", lambda *_: None)  # waiting for one would last for ever
    (link,), (other,) = (list(sockets.values()) for sockets in meet(listeners))
    assert link.getpeername() == other.getsockname()
    for stranger in strangers:
        assert stranger.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, port))  # whoever comes later finds nobody
    for end in (link, other, *strangers):
        hang_up(end)


def test_a_greeting_may_come_byte_by_byte():
    listener = Listener("127.0.0.1")
    host, port, token = listener.address
    with socket.create_connection((host, port)) as caller, ThreadPoolExecutor() as pool:
        caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        meeting = pool.submit(listener.connect, 0, [listener.address, None], 60.0)
        for byte in token + (1).to_bytes(4, "little"):
            caller.send(bytes([byte]))
        (link,) = meeting.result().values()
        assert link.getpeername() == caller.getsockname()
        hang_up(link)


def test_ranks_that_do_not_meet_are_named():
    first, second = Listener("127.0.0.1"), Listener("127.0.0.1")
    addresses = [first.address, second.address, None, None]
    with pytest.raises(OSError, match=r"ranks 1, 2, 3 .*connect"):
        first.connect(0, addresses, 0.01)
    with pytest.raises(OSError, match=r"rank 1 .*rank 0 .*127.0.0.1, port \d+ .*refused"):
        second.connect(1, addresses, 60.0)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="a signal cannot be sent to a thread")
def test_a_signal_in_the_middle_of_a_header_loses_no_rank():
    usual = signal.signal(signal.SIGURG, lambda *_: None)  # ignored otherwise, also by a thread that takes it late
    ours, theirs = socket.socketpair()
    others = set(threading.enumerate())
    links = Links(0, {1: ours}, lambda *_: None)
    (reader,) = set(threading.enumerate()) - others
    head = pickle.dumps(("c", 7))
    for byte in struct.pack("<Qdqd", len(head), 0.0, -1, math.nan) + head:
        theirs.send(bytes([byte]))
        time.sleep(0.01)  # so that most of them are read one by one
        signal.pthread_kill(reader.ident, signal.SIGURG)
    assert take(links, 1).x == 7
    signal.signal(signal.SIGURG, usual)
    hang_up(ours)
    hang_up(theirs)


def test_a_rank_that_aborts_is_lost_after_everything_it_has_sent(pair):
    pair[0].send(1, "c", 5, 0.0)
    pair[0].abort()
    assert take(pair[1], 0).x == 5
    with pytest.raises(PeersGone) as gone:
        pair[1].wait(pair[1].slot(0, "c"), [0], 10.0)
    assert gone.value.lost == [0]


def test_bytes_that_are_no_frame_are_told_of_their_sender_and_leave_no_traceback(monkeypatch):
    crashed = []
    monkeypatch.setattr("threading.excepthook", crashed.append)
    header = struct.Struct("<Qdqd")
    nonsense = [
        b"\xff" * 200,  # a head of 2^64 bytes
        header.pack(5, 0.0, 0, 0.0) + b"{\xff\xfe}x",
        *(
            header.pack(len(head), 0.0, 0, 0.0) + head
            for head in map(pickle.dumps, (5, ("c", ["f4", (-1,)]), ("c", [1])))
        ),
        header.pack(4, 0.0, 0, 0.0) + b"\x80\x05N.",
    ]
    for said in nonsense:
        ours, theirs = socket.socketpair()
        links = Links(0, {1: ours}, lambda *_: None)
        theirs.sendall(said)
        with pytest.raises(PeersGone) as gone:
            links.wait(links.slot(1, "c"), [1], 60.0)
        assert gone.value.lost == [1] and gone.value.unreadable, said
        hang_up(ours)
        hang_up(theirs)
    assert not crashed


def test_a_rank_that_has_ended_its_streams_is_gone_but_not_lost(pair):
    pair[0].send(1, ("group", 3), None, 0.0)
    with ThreadPoolExecutor() as pool:
        left = [pool.submit(links.close) for links in pair]
        assert [future.result() for future in left] == [[], [(0, ("group", 3))]]
    with pytest.raises(PeersGone) as gone:
        pair[1].wait(pair[1].slot(0, "c"), [0], 10.0)
    assert gone.value.lost == []


def test_arrays_that_are_not_of_numbers_are_refused(pair):
    for array in (np.array([{}, None]), np.zeros(2, [("a", "f4")])):
        with pytest.raises(ValueError, match="send arrays of numbers"):
            pair[0].send(1, "c", array, 0.0)


def test_frames_are_counted_when_they_are_handed_over_and_when_they_have_come(pair):
    for i in range(3):
        pair[0].send(1, "c", i, 0.0)
    assert [take(pair[1], 0).x for _ in range(3)] == [0, 1, 2]
    assert [(link.frames_sent, link.frames_received) for link in pair] == [(3, 0), (0, 3)]


def log(rank=0):
    notes = StreamedEventLog(rank)
    notes.begin(time.monotonic(), time.monotonic)
    return notes


def test_rows_are_taken_once_and_reports_stay_with_the_task():
    notes = log()
    notes.losses.append((0, 1, 0.1, 2.0))
    notes.reports += [(1, 0.1, 0, 3, "w1"), (1, 0.1, 3, 6, "v1"), (2, 0.2, 0, 3, "w2")]
    first = notes.take()
    notes.reports[:] = [row for row in notes.reports if row[0] % 2 == 0]  # the task thins them
    notes.reports.append((4, 0.4, 0, 3, "w4"))
    second = notes.take()
    assert len(first["losses"]) == 1 and not second["losses"]
    assert [row[4] for row in first["reports"]] == ["w1", "v1", "w2"]
    assert [row[4] for row in second["reports"]] == ["w4"]


def test_kernels_outside_of_other_work_are_updates_since_the_last_mark():
    notes = log()
    mark = notes.mark
    notes.charge("sgd", 1.0, 1.0)
    with notes.doing(0, "gradient"):
        notes.charge("dense_forward", 1.0, 1.0)
    (kind, start, end, _, label), gradient = notes.spans
    assert (kind, start, label) == (UPDATE, mark, "sgd") and gradient[4] == "gradient" and gradient[1] >= end > start


def test_an_arrival_finds_its_message_also_when_it_is_told_first():
    sender, receiver, merged = log(0), log(1), MergedEventLogs(2)
    row = sender.message(1, 7, 40, 0.25)
    receiver.arrive(0, row, receiver.zero + 0.5)
    merged.add(1, receiver.take())
    merged.match()
    assert merged.event_logs[0].messages == []
    merged.add(0, sender.take())
    merged.match()
    assert merged.event_logs[0].messages == [(1, 7, 40, 0.25, pytest.approx(0.5), False)]


def test_in_a_sum_everybody_waits_for_the_last_one_and_then_communicates():
    merged = MergedEventLogs(2)
    for rank, entered in enumerate((1.0, 3.0)):
        notes = log(rank)
        row = notes.message(1 - rank, -1, 80, entered)
        notes.all_reduces.append((0, 1, 2, entered, entered, 3.5 + rank, 6, row, 1 - rank))
        merged.add(rank, notes.take())
        merged.match()
        assert bool(merged.event_logs[0].spans) == (rank == 1)  # not before everybody's part is known
    first, last = merged.event_logs
    assert first.spans == [(WAIT, 1.0, 3.0, 6, "all-reduce"), (COMMUNICATE, 3.0, 3.5, 6, "all-reduce")]
    assert last.spans == [(COMMUNICATE, 3.0, 4.5, 6, "all-reduce")]
    assert first.messages == [(1, -1, 80, 1.0, 4.5, True)] and last.messages[0][4] == 3.5


def test_a_failure_of_its_own_comes_before_waiting_too_long_and_before_complaints():
    own = Failure.of(KeyError("x"), 2, 5)
    consequence = rank_lost(0, 1.0, 3, "")._replace(severity=2, at=own.at - 1)
    late = Failure(1, own.at - 2, 1, "too long")
    assert min(consequence, late, own) is own and min(consequence, late) is late
    assert str(own.error()) == "rank 2 failed at step 5: KeyError: 'x'"
    assert math.isfinite(own.at)
