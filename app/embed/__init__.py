"""Single pictures, for slides and other web pages."""
