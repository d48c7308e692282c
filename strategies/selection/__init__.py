"""From measured results to a choice: rows, verdicts, recommendation, policy, regret."""
