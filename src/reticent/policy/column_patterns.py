"""Signs by which a column is recognised: its name, and the look of its values.

The names cover the eighteen identifiers of the HIPAA Safe Harbor rule that a table can hold as a column.
"""

from __future__ import annotations

import datetime as dt
import re

from reticent.policy import icd9

IDENTIFYING_NAMES: dict[str, str] = {
    r"(^|_)(first|last|middle|sur|given|family|full|maiden|patient|user)?_?name(s)?($|_)": "a person's name",
    r"(^|_)(patient|person|subject|member|household|family|encounter|visit|record|case|insurance|medical_record|customer)_?(id|nr|no|nbr|num|number|key|uuid|guid|ident)$": "a number given to a person or a record",
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
    r"diagnos|(^|_)(diag|dx|icd)|disease|illness|condition|disorder|comorbid": "an illness",
    r"(^|_)(hiv|aids|test_result|finding|symptom|pregnan)": "a clinical finding",
    r"medicat|(^|_)drug|treatment|procedure|therapy|(^|_)(atc|rx)($|_)": "a treatment",
    r"salary|income|wage": "an income",
}

KNOWN_NAMES: dict[str, str] = {
    r"(^|_)(age|ages|dob|born|yob)($|_)|birth": "an age or a birth",
    r"(^|_)(sex|gender)($|_)": "a sex",
    r"(^|_)(race|ethnic|national|citizen|religio|language|migra)": "an origin",
    r"(^|_)(marital|married|spouse|relationship|household|family|child|children|dependents?|parity)($|_)": "a family",
    r"(^|_)(educat|school|degree|occupation|profession|job|employ|workclass|industry)|hours_per_week": "work or schooling",
    r"(^|_)(city|town|village|county|district|region|state|province|country|municipality|residence|area|urban|rural|geo)": "a place",
    r"(^|_)(zip|post_?code|postal|plz)": "a place",
    r"(^|_)(height|weight)($|_)|blood_?(type|group)": "a body as others see it",
    r"(^|_)(date|year|month|weekday)($|_)": "a time",
    r"(^|_)(death|died|deceased|alive|vital_status)": "a death",
}
"""What neighbours, colleagues and public registers know of a person."""

VISIT_NAMES: dict[str, str] = {
    r"(^|_)(admi(t|ss)|discharg|arriv|referr)": "how somebody came or went",
    r"(^|_)(stay|los)($|_)|in_hospital|(^|_)icu(_|$)": "how long somebody stayed",
    r"(^|_)(ward|dep(t|artment)|unit|clinic|hospital|facility|site|room|bed|special[it]+y|encounter_(type|class)|visit_type)": "where somebody lay",
    r"(^|_)(pay[eo]r|insur|coverage|medicare|medicaid)": "who pays",
    r"(^|_)(charge|cost|amount|price|paid|bill)": "what it cost",
    r"(^|_)(physician|doctor|provider|surgeon|attending)": "who treated somebody",
}
"""What visitors, staff and insurers know of a stay."""

CLINICAL_NAMES: dict[str, str] = {
    r"^(n|no|nr|num|number|count|total)_(?!charge|cost|amount|paid)|_(count|total)$": "a count from the file",
    r"(^|_)(lab|labs|test|result|assay|serum|plasma|urine|glu|glucose|a1c|hba1c|h[a]?emoglobin|creatinin|sodium|potassium|calcium"
    r"|chloride|bicarb|magnesium|phosphate|albumin|bilirubin|cholesterol|hdl|ldl|triglycerid|platelet|wbc|rbc|crp|lactate|troponin"
    r"|inr|ast|alt|egfr|bun|urea|tsh|psa|ferritin|h[a]?ematocrit|leu[ck]ocyt|neutrophil|lymphocyt|bnp|procalcitonin)": "a laboratory value",
    r"(^|_)(pressure|systolic|diastolic|sbp|dbp|bp|heart_?rate|hr|pulse|temp|temperature|spo2|saturation|resp|respirat|oxygen|gcs"
    r"|apgar|bmi|ejection|fev|ecg|ekg|qtc?|pain)(_|$|\w)": "a measurement",
    r"(^|_)(dose|dosage|mg|ml|meds?|units|infusion|ventilat|transfus|dialysis)": "a treatment's measure",
    r"(^|_)(score|scale|index|stage|grade|severity|tumou?r|lesion|mutation|gene|genotype|variant|marker)": "a finding in numbers",
    r"readmi|outcome|complication|survival|follow_?up": "an outcome",
}
"""What only the clinic's file knows."""

_PATTERNS = {
    "email": re.compile(r"^[^@\s]+@[^@\s]+\.[A-Za-z]{2,}$"),
    "url": re.compile(r"^https?://\S+$"),
    "ip": re.compile(r"^(\d{1,3}\.){3}\d{1,3}$|^[0-9a-fA-F:]*::[0-9a-fA-F:]+$"),
    "ssn": re.compile(r"^\d{3}-\d{2}-\d{4}$"),
    "phone": re.compile(r"^\+?\(?\d{2,4}\)?[ /-]\d[\d /-]{4,}\d$"),
    "icd10": re.compile(r"^[A-Z]\d[0-9A-Z](\.?[0-9A-Z]{1,4})?$"),
    "icd9": re.compile(rf"^({icd9.CODE.pattern})$"),
    "icd9 letter": re.compile(r"^(V\d{2}|E\d{3})"),
    "atc": re.compile(r"^[A-DGHJL-NPRSV]\d{2}[A-Z]{2}\d{2}$"),
    "loinc": re.compile(r"^\d{1,5}-\d$"),
    "number": re.compile(r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"),
    "local date": re.compile(r"^\d{1,2}[./-]\d{1,2}[./-](19|20)\d\d( \d{1,2}:\d\d(:\d\d)?)?$"),
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
