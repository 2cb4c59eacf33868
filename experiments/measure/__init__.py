"""What this machine can do: kernel times, message times, and the cost of a model's layers."""
