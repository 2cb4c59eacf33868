"""Averaging: how several parameter vectors become one."""
