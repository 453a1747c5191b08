"""Sections of a policy with their own settings."""
