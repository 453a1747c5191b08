"""The veil: a sensitive value stands among l candidates, each record by itself."""
