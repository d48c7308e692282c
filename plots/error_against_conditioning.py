"""Error of the gradient against the condition number κ, beside the κ u to be expected."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style


def draw(rows: pd.DataFrame) -> Figure:
    """A panel an operation and dtype. Above 1 no digit of the gradient is right."""
    rows = _one_shape(rows.query("shows == 'condition' and error > 0"))
    problem = "no error was measured at several condition numbers"
    rows = style.usual(rows, problem, ["machine", "device"])
    dtypes = sorted(rows["dtype"].unique())
    if len(dtypes) > 1:
        rows = rows.assign(operation=rows["operation"] + ", " + rows["dtype"])
    title = f"Error against condition number, {', '.join(dtypes)}"
    one = "Above 1, the grey line, no digit is right. " if rows["error"].max() > 1 else ""
    note = f"u: unit roundoff. {one}A line that ends: beyond it the strategy refuses the matrix"
    return style.figure(rows, _panel, title, note, ylabel=style.ERROR)


def _one_shape(rows: pd.DataFrame) -> pd.DataFrame:
    """Of every operation, the shape at which most condition numbers were tried."""
    tried = rows.groupby(["operation", "m", "n"])["kappa"].nunique()
    most = tried[tried.gt(1)].sort_values().groupby("operation").tail(1)
    return rows.merge(most.index.to_frame(index=False))


def _panel(ax: Axes, rows: pd.DataFrame) -> None:
    style.errors(ax, rows, "kappa", "condition number κ")
    kappa = rows.sort_values("kappa")["kappa"]
    ax.plot(kappa, rows["roundoff"].iloc[0] * kappa, ls=":", label="κ u", **style.GUIDE)
