"""What a policy for CUDA devices rests on, in minutes."""
