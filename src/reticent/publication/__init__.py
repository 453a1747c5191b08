"""The only place that publishes: an engine on a store, the judge's word, the ledger, the delivery; one driver per kind."""
