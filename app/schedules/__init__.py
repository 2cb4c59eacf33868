"""The schedules page: what every rank of a pipeline does when, without a model."""
