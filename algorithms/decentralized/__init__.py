"""No server and no sum over all: a rank exchanges messages with its neighbours only."""
