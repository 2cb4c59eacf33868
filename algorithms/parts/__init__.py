"""Building blocks of algorithms: optimisers, learning-rate schedules, parts of codecs, topologies, queues."""
