"""Patterns that recognize a column by its name and by the form of its values.

The names cover the eighteen identifiers of the HIPAA Safe Harbor rule, as far as they occur as table columns.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Sequence
from functools import cache

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

IDENTIFYING_NAMES: dict[str, str] = {
    r"^(?!.*(facilit|hospital|ward|dep(t|artment)|clinic|unit|city|town|county|country|state|region|district|drug|medic|test|lab|item|product"
    r"|procedure|diagnos|disease|condition|pay[eo]r|plan|insur|school|study|site|employer|company|event|instrument|field|variable))"
    r".*(^|_)(first|last|middle|sur|fore|given|family|full|maiden|patient|user)?_?names?($|_)": PERSON_NAME,
    r"^(first|last|middle|maiden|vorname|nachname|nom|prenom|nombres?|apellidos?|voornaam|achternaam|familienname|geburtsname|rufname|nom_(de_)?(famille|naissance|usage)|prenoms?)$": PERSON_NAME,
    r"(^|_)(patient|person|subject|member|household|family|encounter|visit|record|case|insurance|medical_record|customer)_?(id|nr|no|nbr|num|number|key|uuid|guid|ident)$": RECORD_NUMBER,
    r"^(pid|eid|ptid|patid|pat(ienten?)?_?(id|nr|no|num|number|nummer|key)|pt_?(id|no|num)|u?subj_?id|bene_?id|desynpuf_id|enroll?_?id|nhs_?no"
    r"|hospital_(no|number)|hadm_id|stay_id|csn|fall_?(nr|nummer))$": RECORD_NUMBER,
    r"^(no|nr|n|num|numero|nummer|ident(ifiant)?|id|code)_(du_|de_|del_)?(patient|paciente|person(ne)?|pat|subject|sejour|dossier|case|fall|visit|encounter|record|historia)$": RECORD_NUMBER,
    r"^(mbi|hicn?|(encrypted_)?hesid|epikey|upi|chi|chi_?(no|number)|nhsno|cpr|cpr_?nr|fnr|pnr|lopnr|hetu|amka|svnr|ahv_?nr|ahv|vers_?nr|kv_?nr|codice_fiscale)$"
    r"|personnummer|personnr|fodselsnummer|pseudonym|(^|_)pseudo_?id$": RECORD_NUMBER,
    r"(^|_)(claim|clm|regist(ry|er|ration)|accession|specimen|sample|order|stud(y|ien)|teilnehmer|participant|fall|contact|spell|episode)_?"
    r"(id|nr|no|nbr|num|number|nummer|key)$|(^|_)(claim|clm|accession)_?(control_)?(no|num|number)$": RECORD_NUMBER,
    r"^(ipp|nip|nir|nda|iep|kvnr|bsn|dni|nhc|nie)$|(versicherten|kranken|fall|akten|dossier)_?(nummer|nr|id|kennung)$|patienten_?kennung|^patient_?nummer$": RECORD_NUMBER,
    r"^(patient|person|subject|participant|member|insured|client|household|family)s?$": "a person",
    r"^(id|uuid|guid|mrn|nhs_number|ssn|row_?id)$": IDENTIFIER,
    r"(^|_)(ssn|social_security)": SOCIAL_SECURITY,
    r"(^|_)(mrn|medical_record)": MEDICAL_RECORD,
    r"(^|_)e_?mail": EMAIL,
    r"(^|_)(phone|telephone|mobile|fax|tel)($|_)": TELEPHONE,
    r"(^|_)(street|address|addr)($|_)": ADDRESS,
    r"(^|_)(account|iban|beneficiary|policy_number|health_plan)": ACCOUNT,
    r"(^|_)(licen[sc]e|certificate|passport|driver)": LICENSE,
    r"(^|_)(vehicle|plate|vin)($|_)": VEHICLE,
    r"(^|_)(device|serial)(_|$)": DEVICE,
    r"(^|_)(url|website|homepage)($|_)": WEB_ADDRESS,
    r"(^|_)(ip|ip_address)($|_)": NETWORK_ADDRESS,
    r"(^|_)(fingerprint|voiceprint|biometric|iris|genome)": BIOMETRIC,
    r"(^|_)(photo|image|picture)($|_)": PHOTOGRAPH,
    r"(^|_)(note|notes|comment|comments|free_?text|remark|narrative|freitext|bemerkung(en)?|anmerkung(en)?|kommentar|notiz(en)?|commentaire|remarque|comentarios?|observaciones|opmerking)($|_)": FREE_TEXT,
}

SENSITIVE_NAMES: dict[str, str] = {
    r"diagnos|(^|_)(diag|dx|icd)|disease|illness|condition|disorder|comorb|morpholog|histolog|topograph|krankheit|erkrankung|maladie|enfermedad": "an illness",
    r"(^|_)(ccs|(ms|apr)?_?drg|mdc|snomed|icpc)(_|$)": "a group of illnesses",
    r"^(?!.*_(meds?|age|date|score)($|_))(.*_)?(diabet|asthma|cancer|krebs|carcinom|karzinom|tumou?r_type|hypertens|hyperton|hepatit|tubercul|tuberkul|depress|schizo|epilep|dement|alzheimer|parkinson"
    r"|stroke|schlaganfall|copd|infarct|infarkt|anaemi|anemi|obes|adipos|syphilis|sclerosis|sklerose)": "an illness",
    r"(^|_)(hiv|aids|test_result|finding|symptom|pregnan|befund|complaint|cause_of_death)|organism|pathogen|erreger|bacteri|microb|mikrob|(^|_)(virus|isolate|germ|keim)": "a clinical finding",
    r"medicat|medikament|medicament|(^|_)drug|treatment|procedure|therap|(^|_)(atc|rx|rxnorm|cpt|hcpcs|ops|opcs|ndc|pzn|bnf|prcdr|opertn)(\d*$|_)": "a treatment",
    r"salary|income|wage|einkommen|gehalt|salaire|ingresos": "an income",
    r"^(target|label|outcome)$": "what is to be predicted",
}

KNOWN_NAMES: dict[str, str] = {
    r"(^|_)(age|ages|dob|born|yob|alter|edad|leeftijd)($|_)|dob($|_)|(start|end|admi|admission|pat|patient|bene|onset|mother|maternal)age($|_)|(^|_)geb_?(dat|tag|jahr)|birth|geburt|geboorte|naissance|nacimiento|nascita": "an age or a birth",
    r"(^|_)(sex|gender|gndr|sexe|sexo|geschl(echt)?|geslacht|female|male|weiblich|maennlich)($|_)": "a sex",
    r"^(prefix|suffix|title|salutation|anrede|titel|civilite)$": "a form of address",
    r"(^|_)(race|ethn|national|citizen|religio|language|migra|staatsang|herkunft)": "an origin",
    r"(^|_)(marital|married|spouse|relationship|household|family|child|children|dependents?|parity|familienstand|estado_civil|etat_civil|situation_familiale|kinder|enfants)($|_)": "a family",
    r"(^|_)(educat|school|degree|occupation|profession|job|employ|workclass|industry|beruf)|hours_per_week": "work or schooling",
    r"(^|_)(city|town|village|county|district|region|state|province|country|municipality|residence|area|urban|rural|geo|imd|depriv|ort($|_)|wohnort|bundesland"
    r"|gemeinde|ville|commune|ciudad|municipio|provincia|woonplaats)": "a place",
    r"(^|_)(lat|lon|lng|latitude|longitude|gps|coordinates?|easting|northing)($|_)": "a place",
    r"(^|_)(zip|post_?code|postal|plz|post_?(dist|sect)|pcds?($|_)|lsoa|msoa|oa\d\d($|_)|resladst|fips|census_?tract|tract($|_)|kreis|ags($|_)|nuts\d?($|_))": "a place",
    r"(^|_)(height|weight|bmi|imc|groesse|koerpergroesse|gewicht|koerpergewicht|taille|poids|talla|peso)($|_)|blood_?(type|group)": "a body as others see it",
    r"(^|_)(smok|tobacco|alcohol|alkohol|raucher|fumeu|tabac|alcool|fumador)": "a habit",
    r"(^|_)(date|year|month|weekday|datum|jahr|fecha)($|_)": "a time",
    r"(^|_)(death|died|deceased|alive|vital_status|expired?($|_)|verstorben)": "a death",
}
"""Columns that neighbors, colleagues and public registers know about a person."""

VISIT_NAMES: dict[str, str] = {
    r"(^|_)(admi(t|ss)|discharg|arriv|referr|disposition|emergency|admi(meth|sorc|src|type|date|agrp)|dis(meth|dest|date)|aufn|entl(ass|_|g|d)|einweis|ueberweis|entree|sortie|ingreso|alta($|_))": "how somebody came or went",
    r"(^|_)(stay|los|speldur|epidur|liegetage|belegungstage)($|_)|in_hospital|(^|_)icu(_|$)|verweildauer|liegedauer|duree_(de_)?sejour": "how long somebody stayed",
    r"(^|_)pos($|_(cd|code)$)|place_of_(service|care)|plc_?of_?(srvc|service)": "where somebody lay",
    r"(^|_)(ward|dep(t|artment)|unit|care_?unit|clinic|hospital|facility|site|room|bed|station|(fach)?abteilung|fachabt|fab($|_)|procode|sitetret|prvdr|klinik|service|unite|hopital|etablissement|special[it]+y|encounter_(type|class)|visit_type)": "where somebody lay",
    r"(^|_)(pay[eo]r|payment|insur|coverage|medicare|medicaid|(kranken)?kasse|kostentraeger|mutuelle|assurance)": "who pays",
    r"(^|_)(charge|cost|amount|amt|price|paid|pmt|bill|expens|betrag|erloes)": "what it cost",
    r"(^|_)(physician|physn|doctor|provider|surgeon|attending|npi($|_)|gp_?prac|practice|praxis|consult(ant)?($|_)|(be)?handler|[a-z]*arzt)": "who treated somebody",
}
"""Columns that visitors, staff and insurers know about a stay."""

CLINICAL_NAMES: dict[str, str] = {
    r"^(n|no|nr|num|number|count|total)_(?!charge|cost|amount|paid)|_(count|total)$": "a count from the file",
    r"(^|_)(specimen|sample_?type|probenmaterial|untersuchungsmaterial|prelevement)($|_)": "what was tested",
    r"(^|_)(labs?|tests?|glu|a1c|hdl|ldl|wbc|rbc|crp|inr|ast|alt|egfr|bun|tsh|psa|bnp)(_|\d|$)": "a laboratory value",
    r"(^|_)(abnormal|ref(erence)?_?(range|low|high|interval)|referenz(bereich|wert)?|normal_?range)($|_)": "a laboratory value",
    r"(^|_)(lab_|result|assay|serum|plasma|urine|glucose|a1cresult|hba1c|h[a]?emoglobin|[ck]reatinin|sodium|potassium|calcium|chloride|bicarb|magnesium"
    r"|phosphate|albumin|bilirubin|chol|triglycerid|platelet|lactate|troponin|urea|ferritin|h[a]?ematocrit|leu[ck]ocyt|neutrophil|lymphocyt"
    r"|procalcitonin)": "a laboratory value",
    r"(^|_)(pressure|systolic|diastolic|sbp|dbp|bp|heart_?rate|hr|pulse|temp|temperature|spo2|saturation|resp|respirat|oxygen|gcs"
    r"|apgar|ejection|fev|ecg|ekg|qtc?|pain)(_|$|\w)": "a measurement",
    r"(^|_)(dose|dosage|mg|ml|meds?(_|$)|units|infusion|ventilat|transfus|dialysis)": "a treatment's measure",
    r"(^|_)(score|scale|index|stage|grade|severity|tumou?r|lesion|mutation|gene|genotype|variant|marker)": "a finding in numbers",
    r"readmi|outcome|complication|survival|follow_?up": "an outcome",
}
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
