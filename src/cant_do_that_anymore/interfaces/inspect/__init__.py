"""The evaluation inside Inspect AI: tasks, scores, and our models as a provider."""
