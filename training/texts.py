"""Training texts: prompts in many paraphrases, which state a rule change or none.

    python training/texts.py --out OUT

The sentences are in phrases.toml. OUT receives texts.npz, the texts as tokens, and words.json, the
words of the tokenizer.
"""

import argparse
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import numpy as np
from games import vocabulary

from cant_do_that_anymore.game.rules import CATALOG, STANDARD, PieceSwap, Rules, placebo_of
from cant_do_that_anymore.providers.pocket import Tokenizer
from cant_do_that_anymore.task.prompts import DEFAULT, SHIPPED_WORDINGS, shipped_wording

PHRASES = tomllib.loads((Path(__file__).parent / "phrases.toml").read_text())
HELD_OUT_RULES = ("bishops-as-rooks", "knights-as-queens", "rooks-as-bishops", "pawns-one-step")
TRAINED_RULES = tuple(key for key in CATALOG if key not in ("standard", *HELD_OUT_RULES))
PIECES = {2: "knight", 3: "bishop", 4: "rook", 5: "queen"}
LICENSE = Path(__file__).parents[1] / "LICENSE"
QUERIED = "a1a8"
"""Stands for the move in question until training puts another there: no prompt has it."""
MAX_TEXT = 256
RARE = 3
WORDINGS = ("default", *SHIPPED_WORDINGS)


def sentences_of(text: str) -> set[str]:
    """The sentences of at least four words, without case and punctuation."""
    parts = (re.sub(r"[^a-z0-9 -]", "", part.lower()) for part in re.split(r"[.:;!?\n]", text))
    return {" ".join(part.split()) for part in parts if len(part.split()) >= 4}


def unrelated_sentences() -> list[str]:
    """Sentences that have nothing to do with chess: those of the license."""
    found = re.split(r"\.\s", " ".join(LICENSE.read_text().split()))
    return [f"{sentence}." for sentence in found if 4 <= len(sentence.split()) <= 25]


PHRASES["unrelated"] = unrelated_sentences()


class Writer:
    """Writes random texts from the phrases for training, or from those held out."""

    def __init__(self, seed: int, held_out: bool = False) -> None:
        self.random = Random(seed)
        self.held_out = held_out

    def phrase(self, kind: str, held_out: bool = False) -> str:
        """One sentence; the kinds that state rules have some that are held out."""
        phrases = [p for p in PHRASES[kind] if p.startswith("~") == held_out]
        return self.random.choice(phrases).removeprefix("~")

    def some(self, kind: str, *counts: int) -> list[str]:
        """Several sentences of a kind, by one of the counts."""
        return self.random.sample(PHRASES[kind], self.random.choice(counts))

    def swapped(self, phrase: str, piece: int, like: int) -> str:
        """A phrase about a piece swap."""
        x, y = PIECES[piece], PIECES[like]
        ways = [way for way in _ways(piece) if way not in _ways(like)] or _ways(piece)
        lost = " or ".join(self.random.choice(PHRASES["lost"][way]) for way in ways)
        names = {"x": x, "y": y, "Xs": x + "s", "Ys": y + "s", "lost": lost}
        return phrase.format(**names, won=self.random.choice(PHRASES["won"][y]))

    def statement(self, rules: Rules) -> list[str]:
        """The rule change in one or two sentences: what is so now, what is forbidden, or both."""
        if not isinstance(rules, PieceSwap):
            kind = {"no-castling": "castling", "knights-cannot-jump": "jumping"}[rules.key]
            return [self.phrase(kind, self.held_out) for _ in range(self.random.choice((1, 1, 2)))]
        positive = self.phrase("swap", self.held_out)
        negative = self.phrase("swap_forbids", self.held_out)
        negatives = [negative] if rules.forbids_something else []
        both = [positive, *negatives]
        style = self.random.random()
        chosen = [positive] if style < 0.35 else both if style < 0.8 else both[::-1]
        if style > 0.9 and negatives:
            chosen = negatives
        return [self.swapped(each, rules.piece, rules.moves_like) for each in chosen]

    def unchanged(self) -> str:
        """A sentence that says that nothing has changed."""
        piece, like = self.random.sample(sorted(PIECES), 2)
        return self.swapped(self.phrase("unchanged"), piece, like)

    def task(self) -> list[str]:
        """The task without a word about changed rules, tersely or at length."""
        terse = self.random.random() < 0.3
        parts = [
            self.some("intro", 0, 1, 1),
            self.some("history", 0, 1) if terse else self.some("history", 0, 1, 2, 3),
            self.some("ask", 0, 1) if terse else self.some("ask", 0, 1, 2),
            self.some("format", 0, 1) if terse else self.some("format", 0, 1, 2, 3),
            [] if terse else self.some("notation", 0, 1, 2, 3, 4),
            self.some("other", 0, 0, 0, 1, 2),
            self.some("unrelated", 0, 0, 0, 0, 1) if terse else self.some("unrelated", 0, 0, 1, 2),
        ]
        if self.random.random() < 0.3:
            self.random.shuffle(parts)
        return [sentence for part in parts for sentence in part]

    def standard(self) -> str:
        """A prompt under the standard rules, or a text that has nothing to do with the game."""
        style = self.random.random()
        if style < 0.1:
            return self.nonsense()
        sentences = self.task()
        if style < 0.5:
            sentences.insert(self.random.randint(0, len(sentences)), self.unchanged())
        return " ".join(sentences)

    def nonsense(self) -> str:
        """Words in no order, or sentences about other things."""
        if self.random.random() < 0.3:
            return " ".join(self.some("other", 0, 1, 3, 6) + self.some("unrelated", 1, 3, 5))
        words = " ".join(self.task()).split()
        letters = "".join(self.random.choices("etaoinshrdlucmfwypvbgkjqxz", k=200))
        words += [letters[i : i + 6] for i in range(0, 200, self.random.randint(6, 12))]
        return " ".join(self.random.sample(words, self.random.randint(1, len(words))))

    def changed(self, rules: Rules) -> str:
        """A prompt that states the rule change first, last or in between, once or twice."""
        task = self.task()
        for _ in range(self.random.choice((1, 1, 1, 1, 2))):
            rule = [
                *self.some("before", 0, 1, 1),
                *self.statement(rules),
                *self.some("after", 0, 1, 1, 2),
            ]
            place = self.random.choice((0, len(task), len(task), self.random.randint(0, len(task))))
            task[place:place] = rule
        return " ".join(task)

    def question(self) -> str:
        """The question whether a move is legal."""
        return f"{self.phrase('question').format(move=QUERIED)} {self.phrase('answer')}"


def _ways(piece: int) -> tuple[str, ...]:
    return ("bishop", "rook") if PIECES[piece] == "queen" else (PIECES[piece],)


def write(count: int, make: Callable[[], str], forbidden: set[str]) -> list[str]:
    """Distinct texts without a forbidden sentence."""
    texts: dict[str, None] = {}
    while len(texts) < count:
        text = make()
        if not sentences_of(text) & forbidden:
            texts[text] = None
    return list(texts)


def shipped_sentences() -> set[str]:
    """The sentences of the shipped wordings and rules, which no training text may have."""
    found = set()
    for rules in CATALOG.values():
        for wording in map(shipped_wording, WORDINGS):
            texts = (wording.standard_prompt(), wording.changed_prompt(rules), rules.statement)
            for text in (*texts, wording.reminder_prompt(rules), wording.legality_question):
                found |= sentences_of(text)
    return found


def training_texts(seed: int, per_rule: int) -> dict[str, list[str]]:
    """Texts by the rules that they state, and the questions of legality."""
    writer, forbidden = Writer(seed), shipped_sentences()
    texts = {STANDARD.key: write(5 * per_rule, writer.standard, forbidden)}
    for key in TRAINED_RULES:
        texts[key] = write(per_rule, lambda: writer.changed(CATALOG[key]), forbidden)  # noqa: B023
    return texts | {"question": write(100, writer.question, forbidden)}


def heldout_texts(seed: int) -> dict[str, str]:
    """Texts to measure with, as "KIND RULES": shipped ones, and held-out and trained phrases."""
    held, trained = Writer(seed + 1, held_out=True), Writer(seed + 1)
    texts = {f"standard {name}": shipped_wording(name).standard_prompt() for name in WORDINGS}
    for key, rules in CATALOG.items():
        if not rules.forbids_something:
            continue
        for name, wording in ((name, shipped_wording(name)) for name in WORDINGS):
            texts[f"{name} {key}"] = wording.changed_prompt(rules)
        texts[f"placebo {key}"] = DEFAULT.changed_prompt(placebo_of(rules))
        texts[f"reminded {key}"] = f"{texts[f'default {key}']} {DEFAULT.reminder_prompt(rules)}"
        asked = DEFAULT.question.format(move=QUERIED, answers="yes or no")
        texts[f"asked {key}"] = f"{texts[f'default {key}']} {asked}"
        for number in range(3 if key != "pawns-one-step" else 0):
            texts[f"heldout{number} {key}"] = held.changed(rules)
            texts[f"trained{number} {key}"] = trained.changed(rules)
    return texts


def rows(texts: Sequence[str], tokenizer: Tokenizer, width: int) -> np.ndarray:
    """The texts as rows of tokens, filled up with -1."""
    filled = np.full((len(texts), width), -1, dtype=np.int16)
    for row, text in zip(filled, texts, strict=True):
        tokens = tokenizer.tokens(text)[:width]
        row[: len(tokens)] = tokens
    return filled


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the training texts.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-rule", type=int, default=3000)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    texts = training_texts(asked.seed, asked.per_rule)
    counts = Counter(
        word for each in texts.values() for text in each for word in Tokenizer.words_of(text)
    )
    words = sorted(
        word for word, count in counts.items() if count >= RARE and word.isalpha() and len(word) > 1
    )
    tokenizer = Tokenizer(list(vocabulary().values()), words)
    width = {"question": 48}
    arrays = {
        key: rows(each, tokenizer, width.get(key, MAX_TEXT - 48)) for key, each in texts.items()
    }
    np.savez_compressed(asked.out / "texts.npz", **arrays)
    heldout = heldout_texts(asked.seed)
    shown = rows(list(heldout.values()), tokenizer, MAX_TEXT)
    np.savez_compressed(asked.out / "heldout.npz", **dict(zip(heldout, shown, strict=True)))
    (asked.out / "words.json").write_text(json.dumps(words))
    lengths = np.concatenate([(each >= 0).sum(1) for each in arrays.values()])
    mean = f"{lengths.mean():.0f} tokens, at most {lengths.max()}"
    print(f"{len(lengths):,} texts, {len(words)} words, {mean}")


if __name__ == "__main__":
    main()
