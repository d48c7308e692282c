"""The autograd glue that every operation shares."""
