"""The prior: what a reader is assumed to know of a value, given the published fields."""
