"""What is measured: asv suites, one thin module an operation, over one grid of cases."""
