"""The sections of a policy that have settings of their own."""
