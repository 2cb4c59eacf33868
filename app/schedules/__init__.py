"""The page of schedules: what every rank of a pipeline does when, without a model."""
