"""Many runs of the same experiment over time: when the level of a metric changed, and by how much."""
