"""What algorithms are made of: optimizers, schedules of rates, codecs' parts, topologies, queues."""
