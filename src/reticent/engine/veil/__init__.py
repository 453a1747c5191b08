"""The veil: each record's sensitive value is published among l candidates; see docs/veil.md."""
