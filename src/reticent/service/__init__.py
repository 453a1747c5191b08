"""The service: an API that feeds post to and analysts read from, and the studio, in one process over one store."""
