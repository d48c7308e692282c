"""Test suites of libraries that call torch's functions, run with these functions replaced."""
