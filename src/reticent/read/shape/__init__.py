"""One file per shape of a release: its tables as arrays, counted by the estimator of that shape."""
