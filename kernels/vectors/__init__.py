"""Vectors: linear algebra on the shards of a vector."""
