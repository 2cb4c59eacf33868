"""The textbook: a chapter with its figures, questions and exercise. The pool does all computation."""
