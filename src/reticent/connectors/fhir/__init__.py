"""FHIR bulk exports (NDJSON of Patient, Encounter, Condition, Observation) as one row per encounter.

The mapping of the policy says which path becomes which column. Resources are joined by their references; the references
themselves, ids and free text never leave. A large export is spread over temporary files by patient and joined piece by
piece, so memory does not grow with it.
"""
