"""Building blocks of algorithms: optimizers, learning-rate schedules, parts of codecs, topologies, queues."""
