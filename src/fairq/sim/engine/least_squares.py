"""Least squares with few unknowns, none below 0, without numpy."""

from __future__ import annotations

from collections.abc import Sequence


def least_squares(rows: Sequence[Sequence[float]], values: Sequence[float], ridge: float = 0.0) -> list[float]:
    """x >= 0 that minimises the mean of (row . x - value)^2 + ridge * |y|^2, y being x in units of the largest value in
    each column. With a small ridge, unknowns that the rows cannot tell apart share. ValueError when there are no rows.

    Lawson and Hanson's active sets: unknowns enter one by one where the error falls fastest, and leave when they would
    become negative. (Solving Least Squares Problems, 1974, chapter 23.)
    """
    if not rows:
        raise ValueError("no equations")
    n = len(rows[0])
    scale = [max(abs(row[i]) for row in rows) or 1.0 for i in range(n)]  # unknowns of one size: the products stay sound
    square = [[sum(row[i] * row[j] for row in rows) / scale[i] / scale[j] for j in range(n)] for i in range(n)]
    for i in range(n):
        square[i][i] += ridge * len(rows)
    right = [sum(row[i] * value for row, value in zip(rows, values, strict=True)) / scale[i] for i in range(n)]
    found, free = [0.0] * n, set[int]()
    for _ in range(10 * n):
        slope = [right[i] - sum(square[i][j] * found[j] for j in range(n)) for i in range(n)]
        entering = [i for i in range(n) if i not in free and slope[i] > 1e-9 * max(map(abs, right))]
        if not entering:
            break
        free.add(max(entering, key=lambda i: slope[i]))
        while free:
            order = sorted(free)
            tried = solve([[square[i][j] for j in order] for i in order], [right[i] for i in order])
            if all(value > 0 for value in tried):
                found = [0.0] * n
                for i, value in zip(order, tried, strict=True):
                    found[i] = value
                break
            # As far towards it as nothing becomes negative; what reaches 0 is fixed there.
            steps = [
                found[i] / (found[i] - value) if found[i] > value else 0.0
                for i, value in zip(order, tried, strict=True)
                if value <= 0
            ]
            share = min(steps)
            for i, value in zip(order, tried, strict=True):
                found[i] += share * (value - found[i])
            free = {i for i in free if found[i] > 1e-12}
    return [value / scale[i] for i, value in enumerate(found)]


def solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Gauss's elimination with pivots; a column without one gets 0."""
    n = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(n):
        pivot = max(range(column, n), key=lambda i: abs(rows[i][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        if abs(rows[column][column]) < 1e-13:
            continue
        for i in range(n):
            if i != column:
                times = rows[i][column] / rows[column][column]
                rows[i] = [a - times * b for a, b in zip(rows[i], rows[column], strict=True)]
    return [row[n] / row[i] if abs(row[i]) >= 1e-13 else 0.0 for i, row in enumerate(rows)]
