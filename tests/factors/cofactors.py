"""Determinants and cofactors by their definition: polynomials in entries of any kind of number."""

import torch


def minor(rows, i, j):
    return [row[:j] + row[j + 1 :] for row in rows[:i] + rows[i + 1 :]]


def determinant(rows):
    """By Laplace's expansion; one for no rows."""
    if not rows:
        return 1
    return sum((-1) ** j * x * determinant(minor(rows, 0, j)) for j, x in enumerate(rows[0]))


def cofactors(rows):
    sides = range(len(rows))
    return [[(-1) ** (i + j) * determinant(minor(rows, i, j)) for j in sides] for i in sides]


def entries(A):
    """Rows of entries, each of all matrices of a batch."""
    return [[*row.unbind(-1)] for row in A.unbind(-2)]


def adjugate(A):
    return torch.stack([torch.stack(row, -1) for row in cofactors(entries(A))], -1)
