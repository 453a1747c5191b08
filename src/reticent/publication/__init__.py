"""Publication: runs an engine on a store, verifies the release, records it in the ledger and delivers it; one driver per kind."""
