"""Model-parallel methods: several ranks share one model and process every sample together."""
