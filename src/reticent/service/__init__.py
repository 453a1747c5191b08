"""The service: the HTTP API for feeds and analysts and the studio for custodians, in one process with one store."""
