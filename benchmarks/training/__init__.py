"""What the strategies are worth in training: `benchmarks.programs`, measured."""
