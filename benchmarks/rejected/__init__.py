"""Strategies that were tried and left out, and the cases that decided it."""
