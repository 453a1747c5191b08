"""One module per shape of a release: its tables as arrays, and its estimator."""
