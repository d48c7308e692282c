"""`python -m strategies` is the command `backward-strategies`."""

from strategies.cli import app

app(prog_name="backward-strategies")
