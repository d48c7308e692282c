"""Sweeps: the cells of a grid or a workload on many machines, one process a cell.

The truth about a sweep is its folder: a result file for each cell that was measured, a file for each try
that failed. Workers on any number of nodes share it, and what a scheduler says is a hint.
"""
