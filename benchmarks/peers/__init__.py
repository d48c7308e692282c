"""The same backward passes in other libraries, each in a process of its own, in turn with ours."""
