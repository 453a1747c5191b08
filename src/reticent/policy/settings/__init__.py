"""One settings model per section of the policy, each kind of release in its own file."""
