"""The folder of a release: its metadata files, and the canonical form of its files."""
