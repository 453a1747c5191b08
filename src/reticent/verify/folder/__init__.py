"""What lies in the folder of a release besides its tables, and how its files are written."""
