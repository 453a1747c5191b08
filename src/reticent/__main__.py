"""`python -m reticent` is the command line."""

from reticent.cli import entry

if __name__ == "__main__":
    entry()
