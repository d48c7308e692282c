"""The strategies of this package, one file each."""
