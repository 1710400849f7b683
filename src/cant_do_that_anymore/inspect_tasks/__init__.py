"""The eval for Inspect AI: tasks, scorer, and our models as a provider."""

from .tasks import cant_do_that_anymore, cant_do_that_anymore_diagonal, cant_do_that_anymore_small

__all__ = ["cant_do_that_anymore", "cant_do_that_anymore_diagonal", "cant_do_that_anymore_small"]
