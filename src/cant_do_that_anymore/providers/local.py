"""A bundled model that gives random answers."""

from random import Random

from .base import Adjustments, Answer, Model, Question, Settings, local_info


class RandomModel(Model):
    """Gives a seeded, uniformly random answer: a legal move, or one of three answers."""

    info = local_info("cdta/random", connections=64)

    async def answer(
        self, question: Question, settings: Settings, adjustments: Adjustments = ()
    ) -> Answer:
        """Give one answer, or none if there is none; yes or no to questions about an answer."""
        choices = ["yes", "no"] if question.about else question.rules.guesses(question.item)
        text = Random(settings.seed).choice(choices) if choices else ""
        return Answer(text, version=self.info.name)
