"""Vectors: what an algorithm of linear algebra asks of the shards of a vector."""
