"""What leads a newcomer: the first screen, a tour, questions, and predictions."""
