"""The pages of the workbench; each says what is on it, in the order one reads it."""
