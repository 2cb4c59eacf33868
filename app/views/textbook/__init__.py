"""The textbook: a chapter with its figures, questions and exercise. Nothing here computes; the pool does."""

from app.views.textbook.page import page as page
