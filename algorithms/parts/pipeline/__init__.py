"""What pipelines are made of: ops, plans, the executor that carries them out, and which weights its passes read."""
