"""Test suites of other libraries, run with this package in place of torch's functions."""
