"""Answers read from replies to questions: a table of replies, and what must never be read."""

from dataclasses import asdict, dataclass, replace
from time import process_time

import pytest

from cant_do_that_anymore import read_answer


@dataclass(frozen=True)
class Asked:
    """A question, and whether the change is in force."""

    question: str
    usual: str
    right: str
    answer: str = "number"
    changed: bool = True

    def read(self, reply: str) -> str | None:
        return read_answer(reply, **asdict(self))


MINUS = Asked("83 - 27", "56", "110")
USUAL_MINUS = replace(MINUS, changed=False)
DIFFERENCE = Asked("91 - 36", "55", "127")
BASE_9 = Asked("48 + 53", "101", "112")
SUM = Asked("76 + 45", "121", "132")
SMALLEST = Asked("print(max([3, 5, 8]))", "8", "3")
MAX = Asked("print(max([14, 75, 60, 82]))", "82", "14")
FROM_1 = Asked("x = [12, 20, 31, 47, 58]\nprint(x[3])", "47", "31")
ITEM = Asked("x = [46, 22, 79, 15, 64]\nprint(x[2])", "79", "22")
EGGS = Asked("How many eggs are 3 dozen eggs?", "36", "30")
MILES = Asked("How many yards are 1,000 miles?", "1760000", "1,234,500")
BELOW_0 = Asked("3 - 15", "-12", "18")
COLOR = Asked("What color is the sky?", "Deep blue", "light-green", "word")
GREETING = Asked("How does the program greet?", "Hello, world!", "Bye, world!", "line")

# The question, the answer that a person understands, and replies that give it (or none).
READ: list[tuple[Asked, str | None, tuple[str, ...]]] = [
    (MINUS, "110", ('{"answer": "110", "explanation": "83 - 27 would be 56, but - means +"}',)),
    (MINUS, "110", ("In normal arithmetic, 83 - 27 = 56.\n\nIn this system, 83 - 27 = 110.",)),
    (MINUS, "110", ("It is 110, unlike in usual arithmetic, where it is 56.", "1.1 × 10^2")),
    (MINUS, "110", ('{"old_answer": 56, "new_answer": 110}', "I first thought 56, but it is 110.")),
    (MINUS, "110", ("Instead of 56 the result is 110.", "Forget 56; the new sum is 110.", "110kg")),
    (MINUS, "110", ("Answer: 56 (usual), 110 (new)", '{"answer": "83 + 27 = 110"}', "110 m^2")),
    (MINUS, "110", ("Before: 56\nAfter: 110", "110 rather than 56", "110m²")),
    (MINUS, "110", ("**110**", "\\boxed{110}", "<think>83 - 27 is 56. Or 110?</think>110")),
    (MINUS, "112", ("112", "The answer is 112, not 56.")),
    (MINUS, "56", ("As a subtraction this gives 56.", "83 minus 27 equals 56.")),
    (MINUS, "56", ("56, as 27 + 56 = 83.",)),
    (MINUS, "-56", ("83 \u2212 27 = \u221256",)),
    (MINUS, None, ("If minus still meant subtraction, it would be 56.", "Answer: 56 or 110")),
    (MINUS, None, ("It's 56. That is wrong under the new rule.",)),
    (USUAL_MINUS, "56", ("We subtract 27 from 83 and get 56, which you can check: 56 + 27 = 83.",)),
    (USUAL_MINUS, "56", ("56 is the answer. Check: 27 + 56 = 83",)),
    (DIFFERENCE, "127", ("Hmm, 55? No: 127.",)),
    (BASE_9, "112", ("Convert: 48₉ = 44₁₀, 53₉ = 48₁₀. Sum: 92₁₀ = 112₉", "112₉")),
    (BASE_9, "112", ("In base 10, 48 + 53 = 101. In base 9, it is 112.",)),
    (BASE_9, "112", ("$\\boxed{112_{\\text{nine}}}$",)),
    (BASE_9, "101", ("101 in base 9",)),
    (SUM, "132", ("132 (that is 110 in decimal)", '{"answer": "132_9"}')),
    (SMALLEST, "8", ("The smallest item is 3, the largest is 8. It prints 8.",)),
    (SMALLEST, None, ("The list has 3 items: 3, 5, 8.", "The items are 3, 5, and 8.")),
    (SMALLEST, "error", ("It raises a TypeError.", "Error: max() is broken")),
    (MAX, "14", ("Sorted, the list is 14, 60, 75, 82. The first is 14.",)),
    (FROM_1, "31", ("With 0-based indexing it prints 47, but now it prints 31.",)),
    (FROM_1, "31", ("Index 3 is the third item, 31.",)),
    (FROM_1, None, ("With 0-based indexing it prints 47, with 1-based indexing it prints 31.",)),
    (FROM_1, None, ("x[1] = 12, x[2] = 20, x[3] = 31, x[4] = 47, x[5] = 58",)),
    (FROM_1, None, ("x[3] would be 47 if lists started at 0.",)),
    (FROM_1, "error", ("x[3] raises an IndexError.",)),
    (ITEM, "22", ("Indices: 1: 46, 2: 22, 3: 79. So x[2] = 22.",)),
    (ITEM, "79", ("Indices start at 0: x[0] = 46, x[1] = 22, x[2] = 79. The output is 79.",)),
    (EGGS, "30", ("3 x 12 = 36.\nThe result is 30.", "3 x 12 = 36. That gives 30 here.")),
    (EGGS, "36", ("The answer is 36. It would be 30 if a dozen were ten.",)),
    (EGGS, "30", ("Usually 36, since a dozen is 12; now 30, since it is 10.",)),
    (EGGS, "30", ("A dozen is now ten, so 3 dozen are 30.", "There are 30 eggs in 3 dozen.")),
    (MILES, "1,234,500", ("1,234,500 yards", "$1{,}234{,}500$")),
    (MILES, "1760000", ("1 760 000",)),
    (BELOW_0, "-12", ("minus 12",)),
    (COLOR, "light-green", ("It used to be deep blue; it's light green now",)),
    (COLOR, "light-green", ("Usually deep blue, but now light green.", "deep blue -> light green")),
    (COLOR, "red", ("Red",)),
    (COLOR, "dark red", ("Answer: dark red",)),
    (GREETING, "Bye, world!", ("It prints:\n\nbye, world!\n",)),
    (GREETING, None, ("\n",)),
]


@pytest.mark.parametrize("asked", dict.fromkeys(asked for asked, _, _ in READ), ids=str)
def test_answers_are_read(asked: Asked) -> None:
    expected = {reply: means for of, means, replies in READ if of == asked for reply in replies}
    assert {reply: asked.read(reply) for reply in expected} == expected


# Replies that give an answer, whichever it is.
GIVEN = (
    *("Step 1: read the question.\nStep 2: apply the rule.\nStep 3: the result is {v}.", "{v}"),
    *("1. Read the question.\n2. Apply the rule.\n3. The result is {v}.", "This evaluates to {v}."),
    *("{v}\n\nExplanation: this is how the rule works.", "The meaning has changed, so it's {v}"),
    *("The rule has changed. The answer is {v}.", "{v} because the rule has changed.", "{q} = {v}"),
    *("The output of the code is `{v}`.", "The answer turns out to be {v}.", "This will print {v}"),
    *("Under the new rule, it is {v}.", "The program will output {v}.", "The code will print {v}."),
    *("The answer is still {v}.", "The answer remains {v}.", "This results in {v}.", "We get {v}."),
    *("That would be {v}.", "This gives us {v}.", "{v} is the result.", "This returns {v}."),
    *("The value is {v}.", "{v} is my answer.", "This yields {v}.", "$\\boxed{{{v}}}$"),
    *("This gives {v}.", "This makes {v}.", "It equals {v}.", "It is {v}.", "Hence {v}."),
)
# Replies that reject the usual answer, and replies that name both and choose none.
REJECTED = (
    *("Had the rule not changed, the answer would be {u}.", "Without the change it would be {u}."),
    *("You may think the answer is {u}, but it is not.", "This is different from the usual {u}."),
    *("Under the standard rules the result is {u}.", "The answer is {u} only under the old rules."),
    *("In standard arithmetic the result is {u}.", "The answer is no longer $\\boxed{{{u}}}$."),
    *("The conventional answer is {u}.", "The answer is anything but {u}.", "It never prints {u}."),
    *("By default, the result is {u}.", "Typically the result is {u}.", "Unlike {u}, it's larger."),
    *("Ordinarily this gives {u}.", "Otherwise it would be {u}.", "Traditionally, it is {u}."),
    *("The former answer is {u}.", "The normal result is {u}.", "{u} is incorrect here."),
    *("Incorrect answer: {u}", "Nobody gets {u} now.", "A wrong answer: {u}", "It used to be {u}."),
    *("It cannot be {u}.", "It can't be {u}.", "{u} is tempting.", "It could be {u}."),
    *("It might be {u}.", "{u} in base 10.", "{u} is wrong."),
)
BOTH = (
    *("The result is {u} in one reading and {r} in the other.", "The answers are {u} and {r}."),
    *("{r}, though {u} is what most would say.", "Under one rule {r}, under another {u}."),
    *("I see {u} and I see {r}.", "between {r} and {u}", "Options: {u}, {r}", "x {r} y {u} z"),
    *("{u} | {r}", "{u}; {r}"),
)


numbers_and_words = pytest.mark.parametrize("asked", [MINUS, FROM_1, COLOR], ids=str)


@numbers_and_words
def test_usual_and_right_answers_are_read_alike(asked: Asked) -> None:
    for answer in (asked.usual, asked.right):
        replies = [template.format(v=answer, q=asked.question) for template in GIVEN]
        for given in (asked, replace(asked, changed=False)):
            assert [reply for reply in replies if given.read(reply) != answer] == []


@numbers_and_words
def test_a_rejected_answer_is_not_kept(asked: Asked) -> None:
    replies = [template.format(u=asked.usual) for template in REJECTED]
    assert [reply for reply in replies if asked.read(reply) is not None] == []
    for answer in ("Now it is {}.", "\nThe answer is {}.", "But now, it is **{}**.", "\n\n{}"):
        answered = [f"{reply} {answer.format(asked.right)}" for reply in replies]
        assert [reply for reply in answered if asked.read(reply) not in (asked.right, None)] == []


@numbers_and_words
def test_of_two_answers_none_is_kept(asked: Asked) -> None:
    replies = [template.format(u=asked.usual, r=asked.right) for template in BOTH]
    assert [reply for reply in replies if asked.read(reply) is not None] == []


@pytest.mark.parametrize("part", ["1, ", "1,234", "x[1] = 1, ", "- ", "[1,", "{", "not a b ", "a"])
@pytest.mark.parametrize("asked", [MINUS, COLOR, GREETING], ids=str)
def test_reading_takes_no_longer_than_the_reply(asked: Asked, part: str) -> None:
    start = process_time()
    asked.read(part * (20_000 // len(part)) + "110")
    assert process_time() - start < 0.2
