"""One worker, one model: the baseline of every parallel method."""
