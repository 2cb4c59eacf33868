"""One worker, one model: what every parallel method is compared with."""
