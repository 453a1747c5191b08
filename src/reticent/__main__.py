"""Runs the command line as `python -m reticent`."""

from reticent.cli import entry

if __name__ == "__main__":
    entry()
