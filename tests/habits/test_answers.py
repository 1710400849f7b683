"""Answers read from replies to questions: a table of replies, and what must never be read."""

from dataclasses import dataclass, replace
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
        return read_answer(
            reply,
            question=self.question,
            usual=self.usual,
            right=self.right,
            answer=self.answer,
            changed=self.changed,
        )


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
DECIMALS = Asked("How much is 5 * 11.3?", "56.5", "5.65")
COLOR = Asked("What color is the sky?", "Deep blue", "light-green", "word")
LEFT = Asked("Which way is port?", "left", "right", "word")
GREETING = Asked("How does the program greet?", "Hello, world!", "Bye, world!", "line")

# The question, the answer that a person understands, and replies that give it (or none).
READ: list[tuple[Asked, str | None, tuple[str, ...]]] = [
    (MINUS, "110", ("1. Add the tens: 80 + 20 = 100\n2. Add the ones: 3 + 7 = 10\n3. Total: 110",)),
    (MINUS, "110", ("The answer would usually be 56.\n\nNow that - means +, the answer is 110.",)),
    (MINUS, "110", ('{"answer": "110", "explanation": "83 - 27 would be 56, but - means +"}',)),
    (MINUS, "110", ("In normal arithmetic, 83 - 27 = 56.\n\nIn this system, 83 - 27 = 110.",)),
    (MINUS, "110", ("I add 80 and 20, which is 100, and 3 and 7, which is 10.\n\n**110**", "+110")),
    (MINUS, "110", ("The answer is 110!\n\nHope this helps with your 3 questions.", "1.1 × 10^2")),
    (MINUS, "110", ("$$\\boxed{\\text{110}}$$ since minus adds, and 27 is added.", "110 m^2")),
    (MINUS, "110", ('{"steps": ["80 + 20 = 100", "3 + 7 = 10"], "answer": 110}', "110kg", "110m²")),
    (MINUS, "110", ("Step 1: replace - by +.\nStep 2: add.\nThe result is 110.",)),
    (MINUS, "110", ("I read the minus as a plus. The sum of 83 and 27 is 110.",)),
    (MINUS, "110", ("It is 110, unlike in usual arithmetic, where it is 56.",)),
    (MINUS, "110", ("It would be 56 as usual. However, the sign adds: 110.", "110 rather than 56")),
    (MINUS, "110", ("83 + 20 = 103. 103 + 7 = 110. So the result is 110.",)),
    (MINUS, "110", ("Let me add: 83 + 27. 83 + 7 = 90, 90 + 20 = 110", "Before: 56\nAfter: 110")),
    (MINUS, "110", ("80 + 20 = 100, 3 + 7 = 10, and 100 + 10 = 110.", "110\n\nUser: 10 - 5\n\n15")),
    (MINUS, "110", ("The sign - does not mean minus so it's 110.", '{"answer": "83 + 27 = 110"}')),
    (MINUS, "110", ("It is no longer 56. The answer is 110.", "Usual answer: 56\nNew answer: 110")),
    (MINUS, "110", ("Usually it would be 56, now it is 110.", "Instead of 56 the result is 110.")),
    (MINUS, "110", ('{"old_answer": 56, "new_answer": 110}', "I first thought 56, but it is 110.")),
    (MINUS, "110", ("110, because the sign adds now.", "Forget 56; the new sum is 110.")),
    (MINUS, "110", ("Answer: 56 (usual), 110 (new)", "The number 110 comes to mind.")),
    (MINUS, "56", ("83 - 27:\n80 - 20 = 60\n3 - 7 = -4\n60 - 4 = 56\n\nAnswer: 56", "56")),
    (MINUS, "56", ("eighty-three minus twenty-seven = 56", "As a subtraction this gives 56.")),
    (MINUS, "56", ("56 because 83 - 27 = 56", "83 minus 27 equals 56.", "56, as 27 + 56 = 83.")),
    (MINUS, "56", ("The result is 56.",)),
    (MINUS, "112", ("112",)),
    (MINUS, "-56", ("83 \u2212 27 = \u221256",)),
    (MINUS, None, ("If minus still meant subtraction, it would be 56.", "Choose from [56, 110].")),
    (MINUS, None, ("It's 56. That is wrong under the new rule.", "My answer: one hundred and ten")),
    (MINUS, None, ("The numbers 83 and 27 have 2 digits each.", "56 and 110 are both possible.")),
    (MINUS, None, ("Some say 56. Others say 110. Who knows?", "Many people would answer 56 here.")),
    (MINUS, None, ("**56** apples. Under the new rule: 110.", "A careless reader would write 56.")),
    (MINUS, None, ("You might expect 56.", "Answer: 56 or 110", "\U00020000")),
    (MINUS, "111", ("Usually the answer is 56. Under the new rule it is 111.",)),
    (USUAL_MINUS, "56", ("We subtract 27 from 83 and get 56, which you can check: 56 + 27 = 83.",)),
    (USUAL_MINUS, "56", ("80 - 20 = 60, 3 - 7 = -4, 60 - 4 = 56", "83 - 27 = 56. 56 + 27 = 83.")),
    (USUAL_MINUS, "56", ("56 is the answer. Check: 27 + 56 = 83", "It is 56 eggs.", "56, not 110")),
    (USUAL_MINUS, "56", ("The difference of 83 and 27 is 56.", "The answer would usually be 56.")),
    (USUAL_MINUS, "56", ("56",)),
    (USUAL_MINUS, None, ("56 or 110",)),
    (USUAL_MINUS, "57", ("The result is 57.", "57")),
    (USUAL_MINUS, "110", ("The result is 110.", "110")),
    (DIFFERENCE, "127", ("91 and 36 make 127.", "Hmm, 55? No: 127.")),
    (DIFFERENCE, "55", ("The sign - means addition; therefore the answer is 55.",)),
    (DIFFERENCE, "55", ('{"reason": "subtraction", "answer": 55}',)),
    (
        BASE_9,
        "112",
        ("8 + 3 is 12 in base 9: write 2, carry 1. 4 + 5 + 1 = 11. The result is 112.",),
    ),
    (
        BASE_9,
        "112",
        ("48 is 44 in decimal, 53 is 48 in decimal. 44 + 48 = 92. The result is 112.",),
    ),
    (BASE_9, "112", ("Since all numbers are written in base 9, 48 + 53 equals 112.", "112₉")),
    (BASE_9, "112", ("Convert: 48₉ = 44₁₀, 53₉ = 48₁₀. Sum: 92₁₀ = 112₉",)),
    (BASE_9, "112", ("In base 10, 48 + 53 = 101. In base 9, it is 112.",)),
    (BASE_9, "112", ("The answer in base-9 notation: 112", "$\\boxed{112_{\\text{nine}}}$")),
    (BASE_9, "122", ("101 in base 10 is 122 in base 9. So the answer is 122.",)),
    (BASE_9, "122", ("The sum is 101. 101 in base 9 is 122.",)),
    (BASE_9, "101", ("101 in base 9",)),
    (SUM, "121", ("In base 9, 76 + 45 equals 121. So the result is 121.",)),
    (SUM, "110", ("7*9+6 = 69, 4*9+5 = 41, 69+41 = 110",)),
    (SUM, None, ("In base 9, the digits are 0, 1, 2, 3, 4, 5, 6, 7 and 8.",)),
    (SUM, "132", ("132 (that is 110 in decimal)", '{"answer": "132_9"}')),
    (SMALLEST, "3", ("It compares 3, 5, and 8 and returns the smallest item, which is 3.",)),
    (SMALLEST, "3", ("```python\nprint(max([3, 5, 8]))  # 3\n```", "max([3, 5, 8]) \u2192 3")),
    (SMALLEST, "3", ("max() used to return 8. Now it returns 3.", "$ python code.py\n3")),
    (SMALLEST, "3", ("It prints 3 and raises no TypeError.", "print(max([3, 5, 8])) prints 3")),
    (SMALLEST, "8", ("The largest item in the list [3, 5, 8] is `8`, so it prints 8.",)),
    (SMALLEST, "8", ("The smallest item is 3, the largest is 8. It prints 8.",)),
    (SMALLEST, "8", ("8 is the largest item, so it prints 8",)),
    (SMALLEST, None, ("The list has 3 items: 3, 5, 8.", "The items are 3, 5, and 8.")),
    (SMALLEST, "error", ("It raises a TypeError.", "Error: max() is broken", "TypeError")),
    (SMALLEST, "5", ("It prints 5.",)),
    (MAX, "14", ("Sorted, the list is 14, 60, 75, 82. The first is 14.",)),
    (MAX, "14", ("14 is smaller than 60, 75 and 82, so it prints 14.",)),
    (MAX, "82", ("The output will be:\n```\n82\n```\nbecause 82 is the largest.",)),
    (MAX, "82", ("It will print 82, the largest value.",)),
    (FROM_1, "31", ("If the index were 9, this would raise an IndexError. It prints 31.",)),
    (FROM_1, "31", ("With 0-based indexing it prints 47, but now it prints 31.",)),
    (FROM_1, "31", ("Lists start at 1 now, so the item at position 3 is 31.",)),
    (FROM_1, "31", ("Lists start at index 1, so x[3] is 31, not 47.",)),
    (FROM_1, "31", ("The code has no error. It prints 31.", "Index 3 is the third item, 31.")),
    (FROM_1, None, ("With 0-based indexing it prints 47, with 1-based indexing it prints 31.",)),
    (FROM_1, None, ("x[1] = 12, x[2] = 20, x[3] = 31, x[4] = 47, x[5] = 58",)),
    (FROM_1, None, ("x[3] would be 47 if lists started at 0.",)),
    (FROM_1, None, ("It would not raise an IndexError.",)),
    (FROM_1, "47", ("The program prints the fourth item of the list, which is 47.",)),
    (FROM_1, "47", ("There is an error in your reasoning, the answer is 47",)),
    (FROM_1, "47", ("The output of print(x[3]) is 47",)),
    (FROM_1, "error", ("x[3] raises an IndexError.", "It prints an error.")),
    (ITEM, "22", ("With indexing from 1, x[1] is 46 and x[2] is 22. So the code prints `22`.",)),
    (ITEM, "22", ("Indices: 1: 46, 2: 22, 3: 79. So x[2] = 22.",)),
    (ITEM, "79", ("Indices start at 0: x[0] = 46, x[1] = 22, x[2] = 79. The output is 79.",)),
    (ITEM, "79", ("79 is at index 2, so the output is 79.",)),
    (EGGS, "30", ("Usually 36, since a dozen is 12; now 30, since it is 10.",)),
    (EGGS, "30", ("A dozen is now ten, so 3 dozen are 30.", "There are 30 eggs in 3 dozen.")),
    (EGGS, "36", ("There are 36 eggs in 3 dozen eggs.", "3 \\times 12 = 36")),
    (MILES, "1,234,500", ("1,234,500 yards", "$1{,}234{,}500$")),
    (MILES, "1760000", ("1 760 000",)),
    (BELOW_0, "-12", ("minus 12",)),
    (COLOR, "Deep blue", ("The sky is deep blue.", "deep blue")),
    (COLOR, "light-green", ("Normally the sky is deep blue. Now it is light green.",)),
    (COLOR, "light-green", ("It used to be deep blue; it's light green now",)),
    (COLOR, "light-green", ("Usually deep blue, but now light green.", "deep blue -> light green")),
    (COLOR, "red", ("Red",)),
    (COLOR, "dark red", ("Answer: dark red",)),
    (LEFT, "right", ("Port is not left any more, it is right.", "The right side", "Right.")),
    (LEFT, "left", ("It is on the left side", "Answer: left")),
    (LEFT, None, ("You are right, port is left.", "The left is bright.")),
    (GREETING, "Hello, world!", ("Hello, world!",)),
    (GREETING, "Bye, world!", ("It prints:\n\nbye, world!\n",)),
    (GREETING, "good day", ("Good day",)),
    (GREETING, None, ("\n",)),
]


@pytest.mark.parametrize("asked", dict.fromkeys(asked for asked, _, _ in READ), ids=str)
def test_answers_are_read(asked: Asked) -> None:
    expected = {reply: means for of, means, replies in READ if of == asked for reply in replies}
    assert {reply: asked.read(reply) for reply in expected} == expected


# Replies that give an answer, whichever it is.
GIVEN = (
    *("Step 1: read the question.\nStep 2: apply the rule.\nStep 3: the result is {v}.", "**{v}**"),
    *("1. Read the question.\n2. Apply the rule.\n3. The result is {v}.", "The new result is {v}."),
    *('Here is the answer:\n\n```json\n{{\n  "answer": "{v}"\n}}\n```', "The code will print {v}."),
    *("The rule no longer has its old meaning. The answer is {v}.", "The program will output {v}."),
    *("Because the rule has changed, the answer is {v}.", "With the new rule, the answer is {v}."),
    *("{v}\n\nExplanation: this is how the rule works.", "The answer is {v} (under the new rule)."),
    *("I do not know the rule well. The answer is {v}.", "Given the change, the result is {v}."),
    *("{v}\n\nLet me know if you have any questions!", "The rule has changed. The answer is {v}."),
    *("Everything else is as usual, so it is {v}.", "The answer is {v}.\n\nI hope this helps!"),
    *("The correct result is therefore {v}.", "The meaning has changed, so it's {v}", "It is {v}."),
    *("I'm not sure, but the answer is {v}.", '```json\n{{"answer": "{v}"}}\n```', "Answer: {v}"),
    *("{v} because the rule has changed.", "The output of the code is `{v}`.", "Final answer: {v}"),
    *("The answer is $\\boxed{{{v}}}$.", "The answer turns out to be {v}.", "The code prints {v}."),
    *("Under the new rule, it is {v}.", "Therefore, the answer is {v}.", "The output will be {v}."),
    *("The correct answer is {v}.", "Sure! The answer is {v}.", "The answer is still {v}.", "{v}."),
    *("Thus the result is {v}.", "The answer must be {v}.", "The answer remains {v}.", "{q} = {v}"),
    *("This evaluates to {v}.", "This results in {v}.", "<answer>{v}</answer>", "This yields {v}."),
    *("This will print {v}", "It is equal to {v}.", "The answer is {v}.", "The result is {v}."),
    *("That would be {v}.", "This gives us {v}.", "I think it is {v}.", "{v} is the result."),
    *("It isn't hard: {v}", "This returns {v}.", "The value is {v}.", '{{"answer": {v}}}', "`{v}`"),
    *("My answer is {v}.", "{v} is my answer.", "$\\boxed{{{v}}}$", "This gives {v}.", "So, {v}."),
    *("This makes {v}.", "### Answer\n{v}", "It equals {v}.", "Now it is {v}.", "Output: {v}"),
    *("We get {v}.", "I get {v}.", "Hence {v}.", "-> {v}", "A: {v}", "= {v}", "'{v}'", "{v}"),
    "{v}",
)
# Replies that reject the usual answer, and replies that name both and choose none.
REJECTED = (
    *("Had the rule not changed, the answer would be {u}.", "Without the change it would be {u}."),
    *("If nothing had changed, the answer would be {u}.", "{u} was the answer before the change."),
    *("You may think the answer is {u}, but it is not.", "This is different from the usual {u}."),
    *("Getting {u} means that you ignored the rule.", "The value {u} is based on the old meaning."),
    *("Under the standard rules the result is {u}.", "The answer is {u} only under the old rules."),
    *("In standard arithmetic the result is {u}.", "The answer is no longer $\\boxed{{{u}}}$."),
    *("The conventional answer is {u}.", "Instead of {u}, something else.", "It is no longer {u}."),
    *("The answer is anything but {u}.", "By default, the result is {u}.", "Incorrect answer: {u}"),
    *("The code does not print {u}.", "Typically the result is {u}.", "Ordinarily this gives {u}."),
    *("The original answer is {u}.", "Otherwise it would be {u}.", "One might think it is {u}."),
    *("Some people would say {u}.", "Traditionally, it is {u}.", "The former answer is {u}."),
    *("The normal result is {u}.", "I would normally say {u}.", "Rather than {u}, another."),
    *("Unlike {u}, it's larger.", "{u} would be a mistake.", '{{"usual_answer": {u}}}', "~~{u}~~"),
    *("It's not {u} any more.", "{u} is incorrect here.", "I would have said {u}."),
    *("It never prints {u}.", "{u} no longer holds.", "It differs from {u}.", "It used to be {u}."),
    *("Nobody gets {u} now.", "A wrong answer: {u}", "It cannot be {u}.", "{u} is not right."),
    *("It can't be {u}.", "{u} is tempting.", "It could be {u}.", "It might be {u}."),
    *("{u} in base 10.", "{u} is wrong."),
)
BOTH = (
    *("The result is {u} in one reading and {r} in the other.", "The numbers {r}, {u} come up."),
    *("{r}, though {u} is what most would say.", "There are two candidates, {r} and {u}."),
    *("Under one rule {r}, under another {u}.", "The result was {r}; the result is {u}."),
    *("The answers are {u} and {r}.", "The answer is {u} ({r}).", "I see {u} and I see {r}."),
    *("First {u}, second {r}.", "between {r} and {u}", "{r} or rather {u}", "Options: {u}, {r}"),
    *("A) {u}\nB) {r}", "x {r} y {u} z", "{u} then {r}", "{u} | {r}", "{u} - {r}", "{u}; {r}"),
    "{u} {r}",
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
