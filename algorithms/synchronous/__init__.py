"""All workers step together, from the same model."""
