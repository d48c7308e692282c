"""The calculus in ball arithmetic: exact gradients of one matrix."""
