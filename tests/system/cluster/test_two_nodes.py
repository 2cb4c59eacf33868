"""Two nodes: network namespaces of this computer, joined by a cable, in which torchrun trains and one is lost."""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.runs import store

ROOT = Path(__file__).resolve().parents[3]
ADDRESS = {"a": "10.77.0.1", "b": "10.77.0.2"}
STREAM = 300_000  # bytes; so many have passed when ranks are training
numbers = itertools.count(20_100)


def sh(*words, check=True):
    return subprocess.run([str(word) for word in words], check=check, capture_output=True, text=True).stdout


class Nodes:
    """Nodes a and b; a knows its own name as a loopback address, as Debian has it. Use as a context."""

    def __init__(self):
        self.prefix = f"lockstep{os.getpid()}"
        self.started = []

    def name(self, node):
        return f"{self.prefix}{node}"

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            undo.push(self.__exit__)
            for node in ADDRESS:
                sh("ip", "netns", "add", self.name(node))
                hosts = Path("/etc/netns", self.name(node), "hosts")
                hosts.parent.mkdir(parents=True)
                master = "127.0.1.1" if node == "a" else ADDRESS["a"]
                hosts.write_text(f"127.0.0.1 localhost\n{master} master\n")
            sh(
                "ip",
                "link",
                "add",
                "cable",
                "netns",
                self.name("a"),
                "type",
                "veth",
                "peer",
                "cable",
                "netns",
                self.name("b"),
            )
            for node, address in ADDRESS.items():
                self.ip(node, "addr", "add", f"{address}/24", "dev", "cable")
                self.ip(node, "link", "set", "cable", "up")
                self.ip(node, "link", "set", "lo", "up")
                slow = ("delay", "1ms"), ("rate", "200mbit", "burst", "100k", "latency", "50ms")
                for kind, limits in zip(("netem", "tbf"), slow, strict=True):  # the second where there is no netem
                    sh(
                        "tc",
                        "-n",
                        self.name(node),
                        "qdisc",
                        "replace",
                        "dev",
                        "cable",
                        "root",
                        kind,
                        *limits,
                        check=False,
                    )
            undo.pop_all()
        return self

    def __exit__(self, *_):
        for node in ADDRESS:
            self.kill(node)
            sh("ip", "netns", "del", self.name(node), check=False)
            hosts = Path("/etc/netns", self.name(node), "hosts")
            hosts.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                hosts.parent.rmdir()
        for process in self.started:
            process.wait()

    def ip(self, node, *words):
        return sh("ip", "-n", self.name(node), *words)

    def train(self, *words):
        """Start a rank under torchrun on each node and return (rank 0, rank 1)."""
        port, started = next(numbers), []
        for rank, node in enumerate(ADDRESS):
            torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", 2, "--node-rank", rank]
            place = ["--nproc-per-node", 1, "--master-addr", "master", "--master-port", port]
            command = ["ip", "netns", "exec", self.name(node), *torchrun, *place, "-m", "algorithms", *words]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "cwd": ROOT}
            started.append(subprocess.Popen([str(word) for word in command], **pipes))
        self.started += started
        return started

    def wait_until_training(self, ranks):
        while self.received() < STREAM:
            assert all(rank.poll() is None for rank in ranks), [rank.communicate()[0] for rank in ranks]
            time.sleep(0.1)

    def received(self):
        statistics = "/sys/class/net/cable/statistics/rx_bytes"
        return int(sh("ip", "netns", "exec", self.name("a"), "cat", statistics))

    def kill(self, node):
        """End all processes of a node, as if its power were cut."""
        for process in sh("ip", "netns", "pids", self.name(node), check=False).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)

    def unplug(self, node):
        self.ip(node, "link", "set", "cable", "down")

    def partition(self, _):
        """Drop all packets, both ways: they are sent to a card that nobody has."""
        for node, other in zip(ADDRESS, reversed(ADDRESS.values()), strict=True):
            self.ip(node, "neigh", "replace", other, "lladdr", "02:00:00:00:00:99", "dev", "cable", "nud", "permanent")


@pytest.fixture
def nodes():
    if sys.platform != "linux" or os.geteuid():
        pytest.skip("only root of a Linux can have network namespaces")
    try:
        made = Nodes().__enter__()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"network namespaces are not permitted here: {getattr(error, 'stderr', '') or error}")
    yield made
    made.__exit__()


@pytest.mark.slow
def test_torchrun_trains_across_two_nodes_though_one_knows_its_name_as_a_loopback_address(nodes, tmp_path):
    ranks = nodes.train("sync_sgd", "--steps", 40, "--runs", tmp_path)
    told = [rank.communicate()[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], told
    (folder,) = store.recent(tmp_path)
    run = store.load(folder)
    assert run.status == "finished" and run.experiment.workers == 2 and "stored  " in told[0]
    assert "stored  " not in told[1] and nodes.received() > 40 * 1000  # its gradients came by this cable


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "lost"),
    [("kill", "a"), ("kill", "b"), ("unplug", "b"), ("partition", "b")],
    ids=["rank_0_killed", "rank_1_killed", "unplugged", "partition"],
)
def test_a_node_that_is_lost_ends_the_run_on_the_other_with_a_sentence(nodes, tmp_path, fault, lost):
    ranks = nodes.train("sync_sgd", "--steps", 10**6, "--runs", tmp_path, "--timeout", 30)
    nodes.wait_until_training(ranks)
    getattr(nodes, fault)(lost)
    told = [rank.communicate()[0] for rank in ranks]
    assert all(rank.returncode for rank in ranks)
    if not (fault == "kill" and lost == "a"):
        assert "worker 1 was lost" in told[0] and "timeout" not in told[0], told[0]
        (folder,) = store.recent(tmp_path)
        assert store.load(folder).status == "failed" and len(store.load(folder).losses) > 1
    if not (fault == "kill" and lost == "b"):
        assert "rank 1: rank 0 was lost" in told[1], told[1]
