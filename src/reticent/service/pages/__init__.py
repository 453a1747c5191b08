"""The studio."""

from fastapi import FastAPI


def mount(app: FastAPI) -> None:
    """Adds the pages to an app."""
