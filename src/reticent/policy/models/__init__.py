"""Models of all classes together, or beside a population, one per file. k, l and t are `core/src/table/model.rs`; see docs/models.md."""
