"""Writes the training texts: prompts in many paraphrases that state a rule change or none.

    python training/texts.py --out OUT

The sentences are in phrases.toml. The script writes texts.npz (training texts as tokens),
heldout.npz (texts for measurements) and words.json (the words of the tokenizer) to OUT.
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
from games import HELD_OUT_RULES, vocabulary

from cant_do_that_anymore.habits.chess.rules import CATALOG, STANDARD, PieceSwap, Rules
from cant_do_that_anymore.providers.bundled import Tokenizer
from cant_do_that_anymore.task.prompts import DEFAULT_WORDING, SHIPPED_WORDINGS, shipped_wording

PHRASES = tomllib.loads((Path(__file__).parent / "phrases.toml").read_text())
TRAINED_RULES = tuple(key for key in CATALOG if key not in ("standard", *HELD_OUT_RULES))
PIECES = {2: "knight", 3: "bishop", 4: "rook", 5: "queen"}
LICENSE = Path(__file__).parents[1] / "LICENSE"
QUERIED = "a1a8"
"""Placeholder for the move in a question, which training replaces; no prompt contains it."""
MAX_TOKENS, MAX_QUESTION_TOKENS = 256, 48
MIN_WORD_COUNT = 3
WORDINGS = {name: shipped_wording(name, STANDARD) for name in (DEFAULT_WORDING, *SHIPPED_WORDINGS)}


def sentences_of(text: str) -> set[str]:
    """Return the sentences of at least four words, in lower case and without punctuation."""
    parts = (re.sub(r"[^a-z0-9 -]", "", part.lower()) for part in re.split(r"[.:;!?\n]", text))
    return {" ".join(part.split()) for part in parts if len(part.split()) >= 4}


def unrelated_sentences() -> list[str]:
    """Return sentences that have nothing to do with chess: those of the license."""
    sentences = re.split(r"\.\s", " ".join(LICENSE.read_text().split()))
    return [f"{sentence}." for sentence in sentences if 4 <= len(sentence.split()) <= 25]


PHRASES["unrelated"] = unrelated_sentences()


class TextWriter:
    """Writes random texts from the training phrases, or from the held-out phrases."""

    def __init__(self, seed: int, held_out: bool = False) -> None:
        self.random = Random(seed)
        self.held_out = held_out

    def phrase(self, kind: str, held_out: bool = False) -> str:
        """Return a random sentence of a kind; kinds that state rules have held-out sentences."""
        phrases = [p for p in PHRASES[kind] if p.startswith("~") == held_out]
        return self.random.choice(phrases).removeprefix("~")

    def sample(self, kind: str, *counts: int) -> list[str]:
        """Return random sentences of a kind; one of the counts is their number."""
        return self.random.sample(PHRASES[kind], self.random.choice(counts))

    def fill_in_swap(self, phrase: str, piece: int, like: int) -> str:
        """Fill in the pieces of a phrase about a piece swap."""
        x, y = PIECES[piece], PIECES[like]
        ways = [way for way in _ways(piece) if way not in _ways(like)] or _ways(piece)
        lost = " or ".join(self.random.choice(PHRASES["lost"][way]) for way in ways)
        names = {"x": x, "y": y, "Xs": x + "s", "Ys": y + "s", "lost": lost}
        return phrase.format(**names, won=self.random.choice(PHRASES["won"][y]))

    def statement(self, rules: Rules) -> list[str]:
        """Return one or two sentences that state what is now legal, what is forbidden, or both."""
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
        return [self.fill_in_swap(phrase, rules.piece, rules.moves_like) for phrase in chosen]

    def unchanged(self) -> str:
        """Return a sentence that says that nothing has changed."""
        piece, like = self.random.sample(sorted(PIECES), 2)
        return self.fill_in_swap(self.phrase("unchanged"), piece, like)

    def task(self) -> list[str]:
        """Return the task without changed rules, in few or many sentences."""
        terse = self.random.random() < 0.3
        parts = [
            self.sample("intro", 0, 1, 1),
            self.sample("history", 0, 1) if terse else self.sample("history", 0, 1, 2, 3),
            self.sample("ask", 0, 1) if terse else self.sample("ask", 0, 1, 2),
            self.sample("format", 0, 1) if terse else self.sample("format", 0, 1, 2, 3),
            [] if terse else self.sample("notation", 0, 1, 2, 3, 4),
            self.sample("other", 0, 0, 0, 1, 2),
            self.sample("unrelated", 0, 0, 0, 0, 1)
            if terse
            else self.sample("unrelated", 0, 0, 1, 2),
        ]
        if self.random.random() < 0.3:
            self.random.shuffle(parts)
        return [sentence for part in parts for sentence in part]

    def standard(self) -> str:
        """Return a prompt under the standard rules, or a text that is not about the game."""
        style = self.random.random()
        if style < 0.1:
            return self.nonsense()
        sentences = self.task()
        if style < 0.5:
            sentences.insert(self.random.randint(0, len(sentences)), self.unchanged())
        return " ".join(sentences)

    def nonsense(self) -> str:
        """Return shuffled words, or sentences about other things."""
        if self.random.random() < 0.3:
            return " ".join(self.sample("other", 0, 1, 3, 6) + self.sample("unrelated", 1, 3, 5))
        words = " ".join(self.task()).split()
        letters = "".join(self.random.choices("etaoinshrdlucmfwypvbgkjqxz", k=200))
        words += [letters[i : i + 6] for i in range(0, 200, self.random.randint(6, 12))]
        return " ".join(self.random.sample(words, self.random.randint(1, len(words))))

    def changed(self, rules: Rules) -> str:
        """Return a prompt that states the rule change at the start, in the middle or at the end."""
        task = self.task()
        for _ in range(self.random.choice((1, 1, 1, 1, 2))):
            rule = [
                *self.sample("before", 0, 1, 1),
                *self.statement(rules),
                *self.sample("after", 0, 1, 1, 2),
            ]
            place = self.random.choice((0, len(task), len(task), self.random.randint(0, len(task))))
            task[place:place] = rule
        return " ".join(task)

    def question(self) -> str:
        """Return a question about the legality of a move."""
        return f"{self.phrase('question').format(move=QUERIED)} {self.phrase('answer')}"


def _ways(piece: int) -> tuple[str, ...]:
    return ("bishop", "rook") if PIECES[piece] == "queen" else (PIECES[piece],)


def write_texts(count: int, write: Callable[[], str], forbidden: set[str]) -> list[str]:
    """Return distinct texts without a forbidden sentence."""
    texts: dict[str, None] = {}
    while len(texts) < count:
        text = write()
        if not sentences_of(text) & forbidden:
            texts[text] = None
    return list(texts)


def shipped_sentences() -> set[str]:
    """Return the sentences of the shipped wordings and rules, which no training text may have."""
    sentences = set()
    for rules in CATALOG.values():
        for wording in WORDINGS.values():
            texts = (wording.standard_prompt(rules), wording.changed_prompt(rules), rules.statement)
            for text in (*texts, wording.reminder_prompt(rules), wording.question_about(rules)):
                sentences |= sentences_of(text)
    return sentences


def training_texts(seed: int, per_rule: int) -> dict[str, list[str]]:
    """Return texts by the rules that they state, and questions about legality."""
    writer, forbidden = TextWriter(seed), shipped_sentences()
    texts = {STANDARD.key: write_texts(5 * per_rule, writer.standard, forbidden)}
    for key in TRAINED_RULES:
        texts[key] = write_texts(per_rule, lambda: writer.changed(CATALOG[key]), forbidden)  # noqa: B023
    return texts | {"question": write_texts(100, writer.question, forbidden)}


def heldout_texts(seed: int) -> dict[str, str]:
    """Return texts for measurements by "KIND RULES": shipped prompts, held-out and trained ones."""
    held_out, trained = TextWriter(seed + 1, held_out=True), TextWriter(seed + 1)
    texts = {f"standard {name}": w.standard_prompt() for name, w in WORDINGS.items()}
    for key, rules in CATALOG.items():
        if not rules.forbids_something:
            continue
        for name, wording in WORDINGS.items():
            texts[f"{name} {key}"] = wording.changed_prompt(rules)
        plain = WORDINGS[DEFAULT_WORDING]
        texts[f"placebo {key}"] = plain.changed_prompt(rules.placebo_change)
        texts[f"reminded {key}"] = f"{texts[f'plain {key}']} {plain.reminder_prompt(rules)}"
        question = plain.question.format(move=QUERIED, answers="yes or no")
        texts[f"asked {key}"] = f"{texts[f'plain {key}']} {question}"
        for number in range(3 if key != "pawns-one-step" else 0):
            texts[f"heldout{number} {key}"] = held_out.changed(rules)
            texts[f"trained{number} {key}"] = trained.changed(rules)
    return texts


def tokenize(texts: Sequence[str], tokenizer: Tokenizer, width: int) -> np.ndarray:
    """Return the texts as rows of tokens, padded with -1."""
    rows = np.full((len(texts), width), -1, dtype=np.int16)
    for row, text in zip(rows, texts, strict=True):
        tokens = tokenizer.tokens(text)[:width]
        row[: len(tokens)] = tokens
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the training texts.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-rule", type=int, default=3000)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    texts = training_texts(options.seed, options.per_rule)
    counts = Counter(
        word for group in texts.values() for text in group for word in Tokenizer.words_of(text)
    )
    words = sorted(
        word
        for word, count in counts.items()
        if count >= MIN_WORD_COUNT and word.isalpha() and len(word) > 1
    )
    tokenizer = Tokenizer(list(vocabulary().values()), words)
    max_prompt_tokens = MAX_TOKENS - MAX_QUESTION_TOKENS
    widths = {"question": MAX_QUESTION_TOKENS}
    arrays = {
        key: tokenize(group, tokenizer, widths.get(key, max_prompt_tokens))
        for key, group in texts.items()
    }
    np.savez_compressed(options.out / "texts.npz", **arrays)
    heldout = heldout_texts(options.seed)
    heldout_rows = tokenize(list(heldout.values()), tokenizer, MAX_TOKENS)
    np.savez_compressed(
        options.out / "heldout.npz", **dict(zip(heldout, heldout_rows, strict=True))
    )
    (options.out / "words.json").write_text(json.dumps(words))
    lengths = np.concatenate([(array >= 0).sum(1) for array in arrays.values()])
    mean = f"{lengths.mean():.0f} tokens, at most {lengths.max()}"
    print(f"{len(lengths):,} texts, {len(words)} words, {mean}")


if __name__ == "__main__":
    main()
