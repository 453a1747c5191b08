"""A policy for each kind of synthetic data, with a reason for each choice: a start to copy from."""

from __future__ import annotations

import re

from reticent.errors import PolicyError

_POLICIES = {
    "hospital": """\
# Hospital admissions, one per person.
version: 1
person: patient_id                # the same person across records; kept inside, never released

columns:
  patient_id:      identifier     # never released
  name:            identifier
  birth_date:      {role: quasi, level: 4, hierarchy: {dates: [day, month, quarter, year, decade]}}   # the veil shows the year
  sex:             quasi          # no hierarchy given: the value, then *
  region:          quasi
  postcode:        {role: quasi, level: 3, hierarchy: {prefix: 5}} # one digit less per level; the veil shows two digits
  admission_route: quasi
  admission_date:  {role: quasi, level: 2, hierarchy: {dates: [day, month, quarter, year]}}           # the veil shows the month
  length_of_stay:  {role: quasi, level: 1, hierarchy: {intervals: [[1, 3, 7, 14, 28], [7, 28]]}}
  ward:            identifier     # held back: a ward often gives the diagnosis away
  diagnosis:       {role: sensitive, hierarchy: {icd10: true}}     # code, block, chapter

# Each group shows at least ten different diagnoses, so at least ten persons stand behind each row.
privacy: {l: 10, suppression: 0.02}

# What a reader knows already: how often each diagnosis is, by sex and decade of birth. For the veil.
prior:    {file: prior.csv}

table:    {method: auto}              # one table, released once: dates, places and stays become coarser until each group has its ten
evolving: {method: veil}              # a table that gains, loses and corrects rows: each diagnosis stands among ten candidates
""",
    "series": """\
# The same persons in several releases, while their illness progresses.
version: 1
person: patient_id                # the same person across releases; kept inside, never released

columns:
  patient_id: identifier
  name:       identifier
  age:        {role: quasi, level: 1, hierarchy: {intervals: [5, 10, 20, 40]}}    # the veil shows five years
  sex:        quasi
  region:     quasi
  postcode:   {role: quasi, level: 3, hierarchy: {prefix: 5}}                     # and two digits
  diagnosis:  {role: sensitive, updates: {file: updates.csv}}      # value, next, probability

privacy: {l: 4}

# Each person stands among four candidates, which move from release to release as the updates say.
prior:  {file: prior.csv}             # age,value,count: what those who arrive have
series: {method: veil}
""",
    "feed": """\
# Admissions as they arrive; each is released at once.
version: 1
person: patient_id                # the same person across visits; kept inside, never released

columns:
  admitted:        plain          # a stream without delay shows the time anyway
  patient_id:      identifier
  household:       identifier     # who lives together falls ill together
  age:             {role: quasi, level: 1, hierarchy: {intervals: [[5, 15, 30, 45, 60, 75, 85], [15, 45, 75]]}}
  sex:             quasi
  region:          quasi
  postcode:        {role: quasi, level: 3, hierarchy: {prefix: 5}}     # the veil publishes two digits of five
  admission_route: quasi
  diagnosis:       sensitive

privacy: {l: 10}

# Each diagnosis stands among ten. What readers know already: how often each one is, by sex and age, and how they follow one
# another when a person comes back.
prior:  {file: prior.csv, by: [sex, age], kernel: {file: kernel.csv}}
stream: {method: veil}
""",
    "evolving": """\
# A census table that gains, loses and corrects rows.
version: 1
person: person_id                 # kept inside, never released

columns:
  person_id:        identifier
  gender:           quasi
  age:              {role: quasi, level: 1, hierarchy: {intervals: [5, 10, 20, 40]}}    # the veil shows five years
  quarter_of_birth: quasi
  marital_status:   quasi
  race:             {role: quasi, hierarchy: {prefix: 4}}
  birthplace:       {role: quasi, hierarchy: {prefix: 4}}
  education:        {role: quasi, hierarchy: {prefix: 3}}
  occupation:       sensitive

privacy: {l: 10}

prior:    {file: prior.csv}           # gender,education,value,count: what readers know of occupations
table:    {method: auto}
evolving: {method: veil}
""",
    "m-distinct": """\
# A census table published again and again while persons change their occupation.
version: 1
person: person_id                 # kept inside, never released

columns:
  person_id:      identifier
  age:            {role: quasi, hierarchy: {intervals: [5, 10, 20, 40]}}
  gender:         quasi
  marital_status: quasi
  education:      {role: quasi, hierarchy: {prefix: 3}}
  occupation:     {role: sensitive, updates: {diameter: 10}}       # stays, or becomes one of nine similar ones

privacy: {l: 4}

table:  {method: auto}
series: {method: m-distinct, max_risk: 0.5}
""",
    "ipums": """\
# A census table for which a wage class is to be predicted.
version: 1
person: person_id                 # kept inside, never released

columns:
  person_id:    identifier
  sex:          quasi
  relationship: {role: quasi, hierarchy: {prefix: 3}}
  race:         quasi
  birthplace:   {role: quasi, hierarchy: {prefix: 3}}
  children:     {role: quasi, hierarchy: {intervals: [2, 4]}}
  education:    {role: quasi, hierarchy: {prefix: 3}}
  occupation:   {role: quasi, hierarchy: {prefix: 4}}
  weeks_worked: {role: quasi, hierarchy: {intervals: [13, 26]}}
  wage:         sensitive

privacy: {k: 4}

table: {method: supervised}
""",
    "nps": """\
# One day of a national patients sample; each record is released as it arrives.
version: 1
person: record_id                 # nobody comes twice

columns:
  record_id:       identifier
  age:             {role: quasi, level: 1, hierarchy: {intervals: [[5, 15, 40, 65], [15, 65]]}}
  length_of_stay:  {role: quasi, level: 1, hierarchy: {intervals: [[1, 3, 7, 14, 28], [7, 28]]}}
  sex:             quasi
  location:        quasi
  admission_route: quasi
  disease:         sensitive

privacy: {l: 10}

prior:  {file: prior.csv}             # value,count: what readers know of diseases
stream: {method: veil}
""",
    "fhir": """\
# A FHIR bulk export, one row per encounter. Names, notes and references never get this far.
version: 1
person: patient_id                # the same person across encounters; kept inside, never released
fhir: encounters                  # the ready mapping of Patient, Encounter and Condition

columns:
  patient_id:      identifier     # never released
  encounter_id:    identifier
  birth_date:      {role: quasi, hierarchy: {dates: [day, month, quarter, year]}}
  sex:             quasi
  region:          quasi
  postcode:        {role: quasi, hierarchy: {prefix: 5}}
  encounter_class: quasi
  admission_date:  {role: quasi, hierarchy: {dates: [day, month, quarter, year]}}
  length_of_stay:  {role: quasi, hierarchy: {intervals: [[1, 3, 7, 14, 28], [7, 28]]}}
  diagnosis:       {role: sensitive, hierarchy: {icd10: true}}

privacy: {l: 10, suppression: 0.02}

table: {method: auto}
""",
    "omop": """\
# An OMOP database (person, visit_occurrence, condition_occurrence), one row per visit.
version: 1
person: person_id                 # the same person across visits; kept inside, never released
sql: omop                         # the ready query

columns:
  person_id:      identifier      # never released
  visit_id:       identifier
  year_of_birth:  {role: quasi, hierarchy: {intervals: [5, 10, 20, 40]}}
  sex:            quasi
  postcode:       {role: quasi, hierarchy: {prefix: 5}}
  region:         quasi
  visit_type:     quasi
  admission_date: {role: quasi, hierarchy: {dates: [day, month, quarter, year]}}
  diagnosis:      {role: sensitive, hierarchy: {icd10: true}}

privacy: {l: 10, suppression: 0.02}

table: {method: auto}
""",
    "fhir-linked": """\
# A FHIR export, released as FHIR: patients, encounters and what belongs to them, linked by pseudonyms.
version: 1
person: patient_id                # kept inside, never released
tables:
  mapping: fhir                   # of the ready columns those that are named below; everything else stays inside
  uncounted: [Condition, Procedure, MedicationRequest]    # how many of them a visit had, no reader knows

columns:
  patient_id:      identifier
  birth_date:      {role: quasi, hierarchy: {dates: [day, month, year, decade]}}
  sex:             quasi
  region:          quasi
  postcode:        {role: quasi, hierarchy: {prefix: 5}}
  death_date:      {role: quasi, hierarchy: {dates: [day, month, year]}, identifier: {shift: 20}}
  encounter_class: quasi
  admission_date:  {role: quasi, hierarchy: {dates: [day, month, year]}, identifier: {shift: 20}}
  diagnosis:       {role: sensitive, hierarchy: {icd10: true}}
  procedure:       sensitive
  medication:      sensitive

# Five persons share every joined view; no diagnosis, procedure or drug is that of more than a third of them.
privacy: {k: 5, l: 3}
""",
    "omop-linked": """\
# An OMOP database, released as one: its tables linked by new keys.
version: 1
person: person_id                 # kept inside, never released
tables:
  mapping: omop                   # of the ready columns those that are named below; everything else stays inside
  uncounted: [condition_occurrence, drug_exposure, procedure_occurrence]    # how many of them a visit had, no reader knows

columns:
  person_id:                identifier
  year_of_birth:            {role: quasi, hierarchy: {intervals: [5, 10, 20, 40]}}
  gender_concept_id:        quasi
  state:                    quasi
  zip:                      {role: quasi, hierarchy: {prefix: 5}}
  visit_concept_id:         quasi
  visit_start_date:         {role: quasi, hierarchy: {dates: [day, month, year]}, identifier: {shift: 20}}
  condition_source_value:   {role: sensitive, hierarchy: {icd10: true}}
  drug_source_value:        sensitive
  procedure_source_value:   sensitive
  death_date:               {role: quasi, hierarchy: {dates: [day, month, year]}, identifier: {shift: 20}}

privacy: {k: 5, l: 3}
""",
    "adt": """\
# HL7 v2 ADT messages as they arrive; each admission is released at once.
version: 1
person: patient_id                # kept inside, never released
hl7: adt                          # the ready mapping of PID, PV1 and DG1

columns:
  patient_id:    identifier
  birth_date:    {role: quasi, level: 4, hierarchy: {dates: [day, month, quarter, year]}}
  sex:           quasi
  postcode:      {role: quasi, level: 3, hierarchy: {prefix: 5}}
  patient_class: quasi
  admitted:      plain            # a stream without delay shows the time anyway
  diagnosis:     sensitive

privacy: {l: 10}

prior:  {file: prior.csv, by: [sex], kernel: {file: kernel.csv}}     # what readers know already
stream: {method: veil}
""",
}
_POLICIES["visits"] = (
    re.sub(
        r"# What a reader.*\n.*\n\n|evolving:.*\n", "", _POLICIES["hospital"]
    )  # an evolving table has one row per person
    .replace("one per person", "several per person")
    .replace("Each group shows", "Each group, and all groups of one person together, show")
    .replace("  name: ", "  visit:           quasi          # how often somebody came is known to others\n  name: ")
)


def policy_yaml(kind: str) -> str:
    """The policy for ``hospital``, ``visits``, ``series``, ``feed``, ``fhir``, ``omop`` (``-linked`` for several tables), ``adt``, ``nps`` or a census layout, as the text of a YAML file."""
    if kind not in _POLICIES:
        raise PolicyError("There is no such kind of data.", hint=f"Choose one of: {', '.join(_POLICIES)}.")
    return _POLICIES[kind]
