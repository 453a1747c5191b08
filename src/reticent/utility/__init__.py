"""How much a release still tells: information loss, class sizes, stream uncertainty and query error."""
