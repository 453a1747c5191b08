"""Write a release of linked tables as a database in the OMOP common data model; `sql` does the reading."""

from reticent.connectors.omop.write import write_omop_release

__all__ = ["write_omop_release"]
