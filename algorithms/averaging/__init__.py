"""Workers train on their own and average their models."""
