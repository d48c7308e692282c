"""Programs that nobody edits: replaced functions, recorded calls, IPython."""
