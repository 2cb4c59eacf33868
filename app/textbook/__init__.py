"""The textbook: a chapter with its figures, questions and exercise. All computation is left to the pool."""
