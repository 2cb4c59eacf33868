"""The wording of numbers, experiments, ranks and places."""
