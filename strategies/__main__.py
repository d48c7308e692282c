"""`python -m strategies` is the command `backward-strategies`."""

from strategies.cli import main

main()
