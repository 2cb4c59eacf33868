"""Programs of torch.distributed that run on simulated ranks and on real processes (gloo), and how far they differ.

python -m tests.torch_zoo 2 [NAME ...]             a table of all, or of these
python -m tests.torch_zoo --ranks 64 [NAME ...]    on simulated ranks only, with the CPU time of each

    programs.py         all of them by name; to import them takes seconds, so it is done when the first is run
    training.py         what they train, and how
    data_parallel.py    DDP, its hooks and options, averaging
    sharded.py          ZeRO, FSDP, checkpoints
    model_parallel.py   tensors, sequences, experts
    pipelines.py        every schedule of torch.distributed.pipelining
    compare.py          the comparison
    tutorials/          scripts, each of which does what one of PyTorch's tutorials does
"""

QUICK = "ddp", "fsdp2", "one_f_one_b", "tensor_parallel"
QUICK_TUTORIALS = "ddp_spawn 1 --batch_size 256", "fsdp2_transformer 2 2"
TUTORIALS = (
    *("ddp_spawn", "ddp_elastic", "fsdp2_transformer", "pipeline_transformer", "pipeline_transformer --tracer"),
    *("tensor_parallel_transformer", "nano_gpt"),
)
"""Scripts, with their arguments."""
