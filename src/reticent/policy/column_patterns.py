"""Patterns that recognize a column by its name and by the form of its values.

The names cover the eighteen identifiers of the HIPAA Safe Harbor rule, as far as they occur as table columns.
`column_patterns.tsv` has them, in the order in which they are tried.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from reticent.policy import icd9

_TRANSLITERATION = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "°": "o ", "º": "o "})


def plain_word(name: str) -> str:
    """Return a name in lower case without accents, its parts joined by underscores.

    >>> plain_word("N° patient"), plain_word("Pat. Nr."), plain_word("birthDate"), plain_word("Größe [cm]")
    ('no_patient', 'pat_nr', 'birth_date', 'groesse_cm')
    """
    name = name.translate(_TRANSLITERATION)
    name = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()).strip("_")


PERSON_NAME = "a person's name"
RECORD_NUMBER = "a number given to a person or a record"
IDENTIFIER = "an identifier"
SOCIAL_SECURITY = "a social security number"
MEDICAL_RECORD = "a medical record number"
EMAIL = "an e-mail address"
TELEPHONE = "a telephone or fax number"
ADDRESS = "an address"
ACCOUNT = "an account or plan number"
LICENSE = "a licence or certificate number"
VEHICLE = "a vehicle identifier"
DEVICE = "a device identifier"
WEB_ADDRESS = "a web address"
NETWORK_ADDRESS = "a network address"
BIOMETRIC = "a biometric identifier"
PHOTOGRAPH = "a photograph"
FREE_TEXT = "free text"

_ROWS = [line.split("\t") for line in Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()[1:]]


def _names(kind: str) -> dict[str, str]:
    """Return the patterns of a kind of column, each with its reason."""
    return {pattern: reason for known, reason, pattern in _ROWS if known == kind}


IDENTIFYING_NAMES, SENSITIVE_NAMES = _names("identifying"), _names("sensitive")
KNOWN_NAMES = _names("known")
"""Columns that neighbors, colleagues and public registers know about a person."""
VISIT_NAMES = _names("visit")
"""Columns that visitors, staff and insurers know about a stay."""
CLINICAL_NAMES = _names("clinical")
"""Columns that nobody outside the clinic can know."""

_PATTERNS = {
    "email": r"^[^@\s]+@[^@\s]+\.[A-Za-z]{2,}$",
    "url": r"^https?://\S+$",
    "ip": r"^(\d{1,3}\.){3}\d{1,3}$|^[0-9a-fA-F:]*::[0-9a-fA-F:]+$",
    "ssn": r"^\d{3}-\d{2}-\d{4}$",
    "phone": r"^\+?\(?\d{2,4}\)?[ /-]\d[\d /-]{4,}\d$",
    "icd10": r"^[A-Z]\d[0-9A-Z](\.?[0-9A-Z]{1,4})?$",
    "icd9": rf"^({icd9.CODE.pattern})$",
    "icd9 letter": r"^(V\d{2}|E\d{3})",
    "atc": r"^[A-DGHJL-NPRSV]\d{2}[A-Z]{2}\d{2}$",
    "loinc": r"^\d{1,5}-\d$",
    "unit": (
        r"(?i)^(%|\u2030|[^/]{0,16}/ ?(\d* ?[dcm\u00b5\u03bcunpfk]?(l|g|mol)|min|h(r|pf|ours?)?|s(ec)?|d(ay)?|mm\d?|m\d|mm\^?3|[km]?m|lpf|campo|100)\b.*"
        r"|[dcm\u00b5\u03bcunpfk]?(g|l|mol|m|s|eq|osm|iu|u)|mc?g|mm ?hg|kpa|sec(onds)?|min(utes)?|bpm|\u00b0? ?[cf]|mm|ratio|i\.?n\.?r\.?)$"
    ),
    "number": r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$",
    "local date": r"^\d{1,2}[./-]\d{1,2}[./-](19|20)\d\d( \d{1,2}:\d\d(:\d\d)?)?$",
    "short date": r"^\d{1,2}([./-])\d{1,2}\1\d\d( \d{1,2}:\d\d(:\d\d)?)?$",
    "some date": (
        r"^((19|20)\d\d[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./ -](\d{1,2}|[^\W\d_]{3,9}\.?)[./ -]((19|20)\d\d|\d\d))([ T]\d{1,2}:.*)?$"
    ),
    "compact date": r"^(18|19|20|21)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])$",
    "whole": r"^\d+$",
}


def looks_like(pattern: str, value: str) -> bool:
    """Whether a value matches a named pattern: e-mail address, date, ICD-10 code, number, ..."""
    if pattern == "date":
        return _is_date(value)
    text = value.strip()
    dated = pattern == "phone" and (_is_date(text) or _pattern("local date").match(text))
    return _pattern(pattern).match(text) is not None and not dated


@cache
def _pattern(name: str) -> re.Pattern[str]:
    # Compiled on first use: most callers look only at names.
    return re.compile(_PATTERNS[name])


def _is_date(value: str) -> bool:
    text = value.strip()
    if len(text) < 8 or not text[:4].isdigit() or text.isdigit():
        return False
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def find_repeated_identifier(table: pa.Table, names: Sequence[str]) -> tuple[str, int] | None:
    """Return the first likely person identifier that repeats, and the number of repeated records; None if none repeats."""
    for name in person_columns(names):
        cells = table.column(name).drop_null()
        further = len(cells) - pc.count_distinct(cells).as_py()
        if further:
            return name, further
    return None


def is_age_or_sex(name: str) -> bool:
    """Whether a column is an age, a birth date or a sex, on which most illnesses depend.

    >>> [is_age_or_sex(name) for name in ("PatientSex", "Geburtsdatum", "ward")]
    [True, True, False]
    """
    patterns = (pattern for pattern, what in KNOWN_NAMES.items() if what in ("an age or a birth", "a sex"))
    return any(re.search(pattern, plain_word(name)) for pattern in patterns)


def person_columns(names: Sequence[str]) -> list[str]:
    """Return the names of columns that may identify a person, most likely first."""
    strong = [
        n
        for n in names
        if re.search(
            r"(patient|paciente|person|subj|member|mrn|nhs|insur|versicherten|bene_?id|enroll?_?id|hesid|^mbi$|vers_?nr|registry|pseudo|^(pid|eid|pat|pt)(_|id|nr|no|$)"
            r"|^(ipp|nip|nir|kvnr|bsn|dni|nhc)$)",
            plain_word(n),
        )
        and not re.search("name", plain_word(n))
    ]
    weak = [n for n in names if re.search(r"(^|_)(id|key|number|nr|no)$|nummer$", plain_word(n))]
    return list(dict.fromkeys(strong + weak))
