"""Studies without training, such as schedules and partitions, and searches over many runs."""
