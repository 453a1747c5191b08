"""The published systems, reproduced: their tables and figures, with the papers' numbers beside ours."""
