"""Figures and the page of the programs that `benchmarks.training` measured."""
