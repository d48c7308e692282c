"""The numbers and figures of docs/accuracy.md; errors are against certified exact gradients."""
