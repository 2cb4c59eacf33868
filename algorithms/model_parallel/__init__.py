"""Model-parallel methods: several ranks hold one model together, and take every sample together."""
