"""The textbook: a chapter with its figures, questions and exercise. Nothing here computes; the pool does."""
