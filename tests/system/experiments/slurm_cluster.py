"""A SLURM of this computer for tests: Debian's munged, slurmctld and two slurmd, in a folder of their own."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[3]
DAEMONS = ("munged", "slurmctld", "slurmd", "sbatch")
CONF = """\
ClusterName=scratch
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def missing() -> str:
    """Why there can be no SLURM here; "" if there can."""
    lacking = [name for name in DAEMONS if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")]
    if lacking:
        return f"SLURM is not installed: there is no {', '.join(lacking)}; apt-get install slurm-wlm munge"
    if os.geteuid():
        return "only root can start SLURM's daemons"
    return ""


class Slurm:
    """Two nodes, n1 and n2, which are both this computer. Use as a context."""

    def __init__(self, folder: Path):
        self.folder = folder
        path = {"PATH": f"{os.environ['PATH']}:/usr/sbin", "PYTHONPATH": str(ROOT)}
        self.environment = {**os.environ, **path, "SLURM_CONF": str(folder / "slurm.conf")}

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self):
        for name in ("state", "spool.n1", "spool.n2"):
            (self.folder / name).mkdir()
        ports = [free_port() for _ in range(3)]
        text = CONF.format(folder=self.folder, ports=ports, host=socket.gethostname())
        (self.folder / "slurm.conf").write_text(text)
        key = self.folder / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        files = {"socket": "munge.socket", "key-file": "key", "pid-file": "munged.pid", "seed-file": "seed"}
        files["log-file"] = "munged.log"
        self.call("munged", "--force", *(f"--{name}={self.folder / file}" for name, file in files.items()))
        self.call("slurmctld")
        for node in ("n1", "n2"):
            self.call("slurmd", "-N", node)
        while self.call("sinfo", "-h", "-o", "%T").split() != ["idle"]:
            time.sleep(0.2)

    def __exit__(self, *_):
        for file in self.folder.glob("*.pid"):
            os.kill(int(file.read_text()), 15)

    def call(self, *words: str) -> str:
        """Run a command of SLURM and return what it prints."""
        done = subprocess.run(words, env=self.environment, cwd=self.folder, capture_output=True, text=True)
        assert not done.returncode, done.stderr
        return done.stdout

    def ended(self, job: str) -> str:
        """Wait until a job has ended, and return its state."""
        while True:
            told = dict(word.split("=", 1) for word in self.call("scontrol", "show", "job", job).split() if "=" in word)
            if told["JobState"] not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING"):
                return told["JobState"]
            time.sleep(0.2)
