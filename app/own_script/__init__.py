"""A reader's own torch.distributed script: what it runs on, and what its run shows."""
