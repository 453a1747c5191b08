"""A release beside the input it was made from: whose record is which, and what is claimed of persons."""
