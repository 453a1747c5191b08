"""The recipient's half: what a release says, estimated with intervals; needs nothing but what was published."""
