"""Signs by which a column is recognised: its name, and the look of its values.

The names cover the eighteen identifiers of the HIPAA Safe Harbor rule that a table can hold as a column.
"""

from __future__ import annotations

import datetime as dt
import re

IDENTIFYING_NAMES: dict[str, str] = {
    r"(^|_)(first|last|middle|sur|given|family|full|maiden|patient|user)?_?name(s)?($|_)": "a person's name",
    r"(^|_)(patient|person|subject|member|household|family|encounter|visit|record|case|insurance|medical_record|customer)_?(id|nr|no|number|key|uuid|guid)$": "a number given to a person or a record",
    r"^(patient|person|subject|participant|member|insured|client|household|family)s?$": "a person",
    r"^(id|uuid|guid|mrn|nhs_number|ssn|row_?id)$": "an identifier",
    r"(^|_)(ssn|social_security)": "a social security number",
    r"(^|_)(mrn|medical_record)": "a medical record number",
    r"(^|_)e_?mail": "an e-mail address",
    r"(^|_)(phone|telephone|mobile|fax|tel)($|_)": "a telephone or fax number",
    r"(^|_)(street|address|addr)($|_)": "an address",
    r"(^|_)(account|iban|beneficiary|policy_number|health_plan)": "an account or plan number",
    r"(^|_)(licen[sc]e|certificate|passport|driver)": "a licence or certificate number",
    r"(^|_)(vehicle|plate|vin)($|_)": "a vehicle identifier",
    r"(^|_)(device|serial)(_|$)": "a device identifier",
    r"(^|_)(url|website|homepage)($|_)": "a web address",
    r"(^|_)(ip|ip_address)($|_)": "a network address",
    r"(^|_)(fingerprint|voiceprint|biometric|iris|genome)": "a biometric identifier",
    r"(^|_)(photo|image|picture)($|_)": "a photograph",
    r"(^|_)(note|notes|comment|comments|free_?text|remark|narrative)($|_)": "free text",
}

SENSITIVE_NAMES: dict[str, str] = {
    r"diagnos|disease|icd|illness|condition": "an illness",
    r"(^|_)(hiv|test_result|finding|symptom)": "a clinical finding",
    r"medicat|drug|treatment|procedure|therapy": "a treatment",
    r"salary|income|wage": "an income",
    r"(^|_)occupation($|_)": "an occupation",
}

_PATTERNS = {
    "email": re.compile(r"^[^@\s]+@[^@\s]+\.[A-Za-z]{2,}$"),
    "url": re.compile(r"^https?://\S+$"),
    "ip": re.compile(r"^(\d{1,3}\.){3}\d{1,3}$|^[0-9a-fA-F:]*::[0-9a-fA-F:]+$"),
    "ssn": re.compile(r"^\d{3}-\d{2}-\d{4}$"),
    "phone": re.compile(r"^\+?\(?\d{2,4}\)?[ /-]\d[\d /-]{4,}\d$"),
    "icd10": re.compile(r"^[A-Z]\d[0-9A-Z](\.[0-9A-Z]{1,4})?$"),
    "number": re.compile(r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"),
    "local date": re.compile(r"^\d{1,2}[./-]\d{1,2}[./-](19|20)\d\d$"),
    "whole": re.compile(r"^\d+$"),
}


def looks_like(sign: str, value: str) -> bool:
    """Whether a value has the look of something: an e-mail address, a date, an ICD-10 code, a number, ..."""
    if sign == "date":
        return _is_date(value)
    return _PATTERNS[sign].match(value.strip()) is not None and not (sign == "phone" and _is_date(value))


def _is_date(value: str) -> bool:
    text = value.strip()
    if len(text) < 8 or not text[:4].isdigit() or text.isdigit():
        return False
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
