"""Evolving tables and series: orders and numbers that tell, and what only the input shows; planted, and refuted by name."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from reticent import Policy, open_evolving, open_series, verify

COLUMNS = {"id": "identifier", "age": "quasi", "sex": "quasi", "ward": "plain"}
VALUES = [f"d{code}" for code in range(9)]
