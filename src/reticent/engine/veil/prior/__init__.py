"""The prior: what an attacker is assumed to know about a value, given the published fields."""
