"""Launchers: what srun, mpirun and torchrun tell a process of its rank becomes torchrun's variables."""

from cluster.real.launchers import PORTS, first_host, variables

TASK = {  # what a task of `srun --nodes 2 --ntasks 3` of SLURM 22.05 has, but for what is of no interest
    "SLURM_JOB_ID": "4711",
    "SLURM_JOB_NODELIST": "node[07-09]",
    "SLURM_LOCALID": "1",
    "SLURM_NNODES": "3",
    "SLURM_NTASKS": "6",
    "SLURM_PROCID": "2",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "node[08-09]",
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_STEP_NUM_TASKS": "3",
}
PROCESS = {  # of `mpirun -n 3` of Open MPI 4.1
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "3",
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "3",
    "PMIX_NAMESPACE": "2863267841",
}
LISTS = {
    "one": "one",
    "one,two": "one",
    "node[01-03,7]": "node01",
    "node[7,01-03],other[1-2]": "node7",
    "rack[1-2]node[03-05]": "rack1node03",
    "a-b[9-11],c": "a-b9",
    "": "",
}


def place(given):
    return [variables(given).get(name) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR")]


def test_a_task_of_srun_is_a_rank_of_its_step_and_meets_the_others_on_the_steps_first_node():
    assert place(TASK) == ["2", "3", "1", "node08"]


def test_tasks_on_one_node_meet_on_the_loopback():
    assert place(TASK | {"SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_NODELIST": "node08"})[3] == "127.0.0.1"


def test_steps_and_jobs_that_run_at_once_meet_at_different_ports_that_every_rank_knows():
    def port(job, step, rank=0):
        return variables(TASK | {"SLURM_JOB_ID": str(job), "SLURM_STEP_ID": str(step), "SLURM_PROCID": str(rank)})[
            "MASTER_PORT"
        ]

    ports = {(job, step): port(job, step) for job in range(90_000, 90_500) for step in range(4)}
    assert len(set(ports.values())) == len(ports) and all(int(one) in PORTS for one in ports.values())
    assert {port(4711, 0, rank) for rank in range(3)} == {port(4711, 0)}


def test_a_batch_script_an_interactive_shell_and_one_task_are_no_ranks():
    script = {name: value for name, value in TASK.items() if "STEP" not in name} | {"SLURM_PROCID": "0"}
    shell = TASK | {"SLURM_STEP_NUM_TASKS": "1", "SLURM_STEP_ID": "4294967290"}
    assert variables(script) == variables(shell) == variables({}) == {}
    assert variables(PROCESS | {"OMPI_COMM_WORLD_SIZE": "1"}) == {}


def test_a_process_of_mpirun_is_a_rank_also_within_a_job_of_slurm():
    assert place(PROCESS) == ["1", "3", "1", "127.0.0.1"]
    spread = PROCESS | {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    assert place(spread) == ["1", "3", "1", ""]  # it does not say where the others are
    assert place(TASK | spread) == ["1", "3", "1", "node07"]
    assert variables(PROCESS)["MASTER_PORT"] != variables(PROCESS | {"PMIX_NAMESPACE": "5"})["MASTER_PORT"]


def test_a_place_to_meet_that_is_given_counts():
    given = {"MASTER_ADDR": "there", "MASTER_PORT": "1234"}
    for launcher in (TASK, PROCESS):
        found = variables(launcher | given)
        assert (found["MASTER_ADDR"], found["MASTER_PORT"]) == ("there", "1234")


def test_torchruns_own_variables_count_before_those_of_the_job_that_it_is_in():
    own = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "MASTER_ADDR": "here", "MASTER_PORT": "29500"}
    assert variables(TASK | PROCESS | own) == own
    assert variables({name: own[name] for name in own if name != "RANK"}) == {}


def test_the_first_host_of_a_node_list():
    for nodes, first in LISTS.items():
        assert first_host(nodes) == first
