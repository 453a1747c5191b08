"""Reproductions of published systems: their tables and figures, with the papers' numbers next to ours."""
