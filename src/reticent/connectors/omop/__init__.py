"""OMOP out: a release of linked tables as a database in the common data model; reading is that of `sql`."""

from reticent.connectors.omop.write import write_omop_release

__all__ = ["write_omop_release"]
