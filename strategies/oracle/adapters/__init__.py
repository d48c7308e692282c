"""One file a library: what `strategies.oracle.grader` asks it by. None but `ours` imports this package."""
