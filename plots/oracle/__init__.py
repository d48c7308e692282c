"""How libraries answer to an oracle set: a figure, and the tables of docs/oracle.md."""
