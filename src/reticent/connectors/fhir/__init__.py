"""FHIR bulk exports (NDJSON of Patient, Encounter, Condition, Observation) as one row per encounter.

The policy's mapping says which path becomes which column. Resources are joined by their references. References, ids and
free text are never released. A large export is split by patient over temporary files and joined part by part, so memory
does not grow with its size.
"""
