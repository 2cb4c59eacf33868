"""Staleness: how a server compensates for gradients computed at old parameters."""
