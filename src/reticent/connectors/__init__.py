"""Where data comes from and where releases go: files, databases, brokers, each in its own package."""
