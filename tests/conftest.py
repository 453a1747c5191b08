"""Shared by all tests."""

from hypothesis import HealthCheck, settings

# No wall-clock assertions: a busy machine must not fail a test.
settings.register_profile("reticent", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("reticent")
