"""HOW MUCH: what a method should cost, by closed forms and simulators that need no cluster."""
