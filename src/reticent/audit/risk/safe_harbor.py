"""HIPAA Safe Harbor: look for the eighteen identifiers in the published columns, by name and by content.

Guarantee: none; the check compares column names and value patterns, and helps the person who signs.
Not covered: identifiers in free text; actual knowledge (the rule's second condition).
Cost: linear in the distinct values of each column.
Reference: 45 CFR 164.514(b)(2).
Differences from the rule: three-digit ZIP areas with 20,000 people or fewer are the 17 areas of the 2000 census that
    the guidance of the US Department of Health and Human Services lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from reticent.policy import column_patterns as meanings
from reticent.verify.groups import codes

SMALL_ZIP = frozenset(
    "036 059 063 102 203 556 692 790 821 823 830 831 878 879 884 890 893".split()  # noqa: SIM905 - a list to compare
)

IDENTIFIERS: dict[str, tuple[str, ...]] = {
    "Names": (meanings.PERSON_NAME,),
    "Geographic units smaller than a state": (meanings.ADDRESS, "zip", "place"),
    "Dates other than the year; ages above 89": ("date", "age"),
    "Telephone numbers": (meanings.TELEPHONE, "phone"),
    "Fax numbers": (meanings.TELEPHONE, "phone"),
    "E-mail addresses": (meanings.EMAIL, "email"),
    "Social security numbers": (meanings.SOCIAL_SECURITY, "ssn"),
    "Medical record numbers": (meanings.MEDICAL_RECORD,),
    "Health plan beneficiary numbers": (meanings.ACCOUNT,),
    "Account numbers": (meanings.ACCOUNT,),
    "Certificate and license numbers": (meanings.LICENSE,),
    "Vehicle identifiers": (meanings.VEHICLE,),
    "Device identifiers": (meanings.DEVICE,),
    "Web addresses": (meanings.WEB_ADDRESS, "url"),
    "IP addresses": (meanings.NETWORK_ADDRESS, "ip"),
    "Biometric identifiers": (meanings.BIOMETRIC,),
    "Full-face photographs": (meanings.PHOTOGRAPH,),
    "Any other unique identifying number or code": (
        meanings.IDENTIFIER,
        meanings.RECORD_NUMBER,
        "unique",
        meanings.FREE_TEXT,
    ),
}

_ZIP_NAME = re.compile(r"(^|_)(zip|postcode|postal|plz)", re.IGNORECASE)
_PLACE_NAME = re.compile(r"(^|_)(city|town|county|district|village|municipality|parish)($|_)", re.IGNORECASE)
_AGE_NAME = re.compile(r"(^|_)age($|_)", re.IGNORECASE)
_SHOWN = re.compile(r"^(\d{3,5})(\D.*|\**)?$")


@dataclass(frozen=True)
class Check:
    """The check for one of the eighteen identifiers.

    Attributes:
        identifier: its name in the rule.
        columns: published columns that look like this identifier, with the reason; empty if there are none.
    """

    identifier: str
    columns: tuple[str, ...]

    @property
    def clear(self) -> bool:
        """Whether no published column looks like this identifier."""
        return not self.columns

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self) | {"clear": self.clear}


def safe_harbor(tables: list[pa.Table]) -> list[Check]:
    """Check the columns of a release for all eighteen identifiers."""
    hits: dict[str, list[str]] = {name: [] for name in IDENTIFIERS}
    for table in tables:
        for column in table.column_names:
            if column in ("group", "seq", "count"):
                continue
            for sign, why in _signs(column, codes(table[column])[1], table.num_rows):
                for identifier, signs in IDENTIFIERS.items():
                    if sign in signs:
                        hits[identifier].append(f"{column}: {why}")
    return [Check(name, tuple(dict.fromkeys(columns))) for name, columns in hits.items()]


def _signs(column: str, values: tuple[str | None, ...], rows: int) -> list[tuple[str, str]]:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s-]", "_", column).lower()
    signs = [
        (meaning, "by its name") for pattern, meaning in meanings.IDENTIFYING_NAMES.items() if re.search(pattern, name)
    ]
    shown = [value for value in values if value is not None and value != "*"]
    if not shown:
        return []
    for sign in ("email", "url", "ip", "ssn", "phone", "date"):
        hits = sum(meanings.looks_like(sign, value) for value in shown[:5000])
        if hits * 2 > min(len(shown), 5000):
            signs.append((sign, f"{hits} of {min(len(shown), 5000)} values look like one"))
    if _PLACE_NAME.search(name):
        signs.append(("place", "by its name"))
    if _ZIP_NAME.search(name):
        signs += _count("zip", shown, _fine_zip, "values finer than a safe three-digit area")
    if _AGE_NAME.search(name):
        signs += _count("age", shown, _very_old, "values show an age above 89")
    if len(values) == rows and rows > 20 and all(meanings.looks_like("whole", value) for value in shown[:1000]):
        signs.append(("unique", "different number in every row"))
    return signs


def _count(sign: str, shown: list[str], test: Callable[[str], bool], why: str) -> list[tuple[str, str]]:
    hits = sum(test(value) for value in shown)
    return [(sign, f"{hits} {why}")] if hits else []


def _fine_zip(value: str) -> bool:
    digits = value.rstrip("*")
    return (len(digits) > 3 or digits in SMALL_ZIP) and _SHOWN.match(value) is not None


def _very_old(value: str) -> bool:
    numbers = [float(part) for part in re.findall(r"\d+(?:\.\d+)?", value)]
    low = numbers[0] if numbers else 0.0
    return bool(numbers) and low > 89 and not value.endswith("+")
