"""Privacy models over all classes or against a population, one per file; k, l and t are in `core/src/table/model.rs`."""
