"""Staleness: what a server can do about a gradient that is old when it arrives."""
