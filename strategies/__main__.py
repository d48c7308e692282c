"""`python -m strategies` is the command `backward-strategies`."""

from strategies.cli.main import main

main()
