"""The subcommands of `backward-strategies`, one file each."""
