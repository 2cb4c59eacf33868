"""A reader's own torch.distributed script: its machines, and the results of its run."""
