"""Decentralized: no server and no sum over all; a rank talks to its neighbours only."""
