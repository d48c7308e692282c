"""What is measured over time, and by other means than the result store: asv suites, gates, peers."""
