"""Score intervals of ratios, and exact tests, both clustered by game."""
