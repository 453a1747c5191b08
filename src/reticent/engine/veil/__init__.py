"""The veil: each record's sensitive value among l candidates, released by itself; see docs/veil.md."""
