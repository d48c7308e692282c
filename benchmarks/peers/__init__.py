"""The same backward passes in other libraries, each in a process of its own, in the same rounds as ours."""
