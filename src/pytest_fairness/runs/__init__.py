"""What is on disk: the run's folder, its verbatim records, its account."""
