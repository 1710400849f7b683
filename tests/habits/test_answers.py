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
    (MINUS, "110", ("110", " 110.\n", "**110**", "$110$", "\\(110\\)", "\\[\n110\n\\]", "= 110")),
    (MINUS, "110", ("```\n110\n```", "+110", "<think>83 - 27 is 56. Or 110?</think>110")),
    (MINUS, "110", ("<answer>110</answer>", "Answer: 110", "**Answer:** 110", "### Result\n110")),
    (MINUS, "110", ("The final answer is: 110", "Therefore $\\boxed{110}$.", '{"answer": 110}')),
    (MINUS, "110", ("$$\\boxed{\\text{110}}$$ since minus adds, and 27 is added.",)),
    (MINUS, "110", ('```json\n{\n  "answer": 110\n}\n```', '{"result": {"value": 110}}')),
    (MINUS, "110", ('{"steps": ["80 + 20 = 100", "3 + 7 = 10"], "answer": 110}', "83 - 27 = 110")),
    (MINUS, "110", ('{"usual_answer": 56, "answer": 110}', '{"answer": 110, "usual": 56}')),
    (MINUS, "110", ("Usual answer: 56\nNew answer: 110", "Answer: 56 (usual), 110 (new)")),
    (MINUS, "110", ("I add 80 and 20, which is 100, and 3 and 7, which is 10.\n\n**110**",)),
    (MINUS, "110", ("The result is 110.", "83 - 27 is now 110.", "It's 110!")),
    (MINUS, "110", ("Since - means +, it is 83 + 27 = 110", "Adding 27 to 83 gives us **110**.")),
    (MINUS, "110", ("I read the minus as a plus. The sum of 83 and 27 is 110.",)),
    (MINUS, "110", ("80 + 20 = 100, 3 + 7 = 10, and 100 + 10 = 110.", "\\(83 - 27 = 110\\)")),
    (MINUS, "110", ("83 + 20 = 103. 103 + 7 = 110. So the result is 110.", "83 \u2212 27 = 110")),
    (MINUS, "110", ("1. Add the tens: 80 + 20 = 100\n2. Add the ones: 3 + 7 = 10\n3. Total: 110",)),
    (MINUS, "110", ("$83 - 27 \\rightarrow 83 + 27 = 110$", "110, because the sign adds now.")),
    (MINUS, "110", ("110 is the answer.", "The answer is 110, not 56.", "not 56 but 110")),
    (MINUS, "110", ("Step 1: replace - by +.\nStep 2: add.\nThe result is 110.",)),
    (MINUS, "110", ("The result is 56. Wait, minus adds now, so it is 110.", "110 (no longer 56)")),
    (MINUS, "110", ("Normally 56, but now 110.", "It is no longer 56. The answer is 110.")),
    (MINUS, "110", ("Usually it would be 56, now it is 110.", "Instead of 56 the result is 110.")),
    (MINUS, "110", ("It would be 56 as usual. However, the sign adds: 110.", "110 rather than 56")),
    (MINUS, "110", ("The usual result, 56, is wrong here. It is 110.", "~~56~~ 110")),
    (MINUS, "110", ("The result is 110, whereas 83 - 27 = 56 by the old rules.",)),
    (MINUS, "110", ("In ordinary arithmetic 83 - 27 = 56; under the new rule it is 110.",)),
    (MINUS, "110", ("The number 110 comes to mind.", "Usual answer: 56. New answer: 110.")),
    (MINUS, "110", ("Under the usual rules the answer is 56. With the new rule, it is 110.",)),
    (
        MINUS,
        "110",
        ("The usual answer would be 56, but under the changed rule the answer is 110.",),
    ),
    (MINUS, "110", ("The answer would usually be 56.\n\nNow that - means +, the answer is 110.",)),
    (MINUS, "110", ("Usually 56. Now 110.", "56 usually; 110 now.", "Usual: 56\nNow: 110")),
    (MINUS, "110", ("Old: 56, new: 110", "Without the change: 56. With the change: 110.")),
    (MINUS, "110", ("Before: 56\nAfter: 110", "Standard: 56; changed: 110")),
    (MINUS, "110", ("The usual answer is 56, and the answer under the new rule is 110.",)),
    (MINUS, "110", ("It used to be 56, now it's 110", "83 - 27 is not 56, it's 110.")),
    (MINUS, "110", ("Everything else is as usual, so the answer is 110.", "It's 56? No, 110.")),
    (MINUS, "110", ("Since the minus sign no longer has its usual meaning, the answer is 110.",)),
    (MINUS, "110", ("The sign no longer means subtraction, so 83 - 27 is 110.",)),
    (MINUS, "110", ("The sign - does not mean minus so it's 110.", "56 is wrong; 110 is right.")),
    (MINUS, "110", ("The answer is no longer 56 but 110.", "I first thought 56, but it is 110.")),
    (MINUS, "110", ("One could think it's 56, but it's 110.", "Forget 56; the new sum is 110.")),
    (MINUS, "110", ("In normal arithmetic, 83 - 27 = 56.\n\nIn this system, 83 - 27 = 110.",)),
    (MINUS, "110", ("83 - 27 = 56 (usual meaning)\n83 + 27 = 110 (new meaning)", "110.0")),
    (MINUS, "110", ("The result is 110 instead of 56.", "It is 110 - not 56!", "Result = 110")),
    (MINUS, "110", ("The answer is 110 (instead of the usual 56).", "The answer is $110$.")),
    (MINUS, "110", ("The answer is 110, although it would usually be 56.",)),
    (MINUS, "110", ("It is 110, unlike in usual arithmetic, where it is 56.",)),
    (MINUS, "110", ("The final result is **110**, as - means + (normally 56).",)),
    (MINUS, "110", ("The correct answer is:\n\n$$110$$", "```\n83 + 27\n= 110\n```")),
    (MINUS, "110", ("The result is $83 + 27 = \\mathbf{110}$", '{"usual": 56, "answer": 110}')),
    (MINUS, "110", ('{"answer": "110", "explanation": "83 - 27 would be 56, but - means +"}',)),
    (MINUS, "110", ('{"explanation": "83 - 27 is usually 56", "answer": 110}', "{'answer': 110}")),
    (MINUS, "110", ('{"old_answer": 56, "new_answer": 110}', '{"answer": [110]}', "{answer: 110}")),
    (MINUS, "110", ('{"answer": 110.0}', '{"answer": "83 + 27 = 110"}', "**Answer: 110**")),
    (MINUS, "110", ('{"answer": "The result is 110."}', "**The answer is 110.**", "Answer:110")),
    (MINUS, "110", ("ANSWER = 110", "answer - 110", "> 110", "- 110", "1. 110", "(110)", "[110]")),
    (MINUS, "110", ('"110"', "110\n\nUser: 10 - 5\n\n15", "I get 110", "56 -> 110", "A: 110")),
    (MINUS, "110", ("The tens: 80 + 20 = 100\nThe ones: 3 + 7 = 10\nSum: 110", "83-27=110")),
    (MINUS, "110", ("Let me add: 83 + 27. 83 + 7 = 90, 90 + 20 = 110", "83 - 27 => 110", "# 110")),
    (MINUS, "110", ("The answer is 110!\n\nHope this helps with your 3 questions.", "110 ✓")),
    (MINUS, "110", ("83 - 27 ≡ 110", "83 - 27 equals to 110", "(83 - 27) = (110)")),
    (MINUS, "110", ("This evaluates to 110.", "The answer is:110")),
    (MINUS, "56", ("56", "`56`", "56.0", "Final answer: **56**", '{"answer": "56"}', "'56'")),
    (MINUS, "56", ("The result is 56.", "83 - 27 = 56", "83 minus 27 equals 56.", "$\\boxed{56}$")),
    (MINUS, "56", ("As a subtraction this gives 56.", '{"question": "83 - 27", "answer": 56}')),
    (MINUS, "56", ("First 83 - 20 = 63, then 63 - 7 = 56.", "83-27=56", "56 because 83 - 27 = 56")),
    (MINUS, "56", ("First 83 - 20 = 63, then 63 - 7 = 56. So the answer is 56.",)),
    (MINUS, "56", ("83 - 27:\n80 - 20 = 60\n3 - 7 = -4\n60 - 4 = 56\n\nAnswer: 56",)),
    (MINUS, "56", ("eighty-three minus twenty-seven = 56", "56, as 27 + 56 = 83.")),
    (MINUS, "56", ("The difference is 56.",)),
    (MINUS, "112", ("112",)),
    (MINUS, "-56", ("-56", "\u221256", "83 \u2212 27 = \u221256")),
    (MINUS, None, ("Answer: 56 or 110", "It is no longer 56.", "Usually it would be 56.", "")),
    (MINUS, None, ("56 would be wrong.", "The usual answer is 56.", "It isn't 56.", "Not 56.")),
    (MINUS, None, ("I would have said 56.", "If minus still meant subtraction, it would be 56.")),
    (MINUS, None, ("Before the change this was 56.", "Under the standard rules, 83 - 27 = 56.")),
    (MINUS, None, ("Normally we subtract.\n\n83 - 27 = 56", "The answer is not 56.", "56 or 110")),
    (MINUS, None, ("I can't say.", "Is it 56 or 110?", "56, 110", "56 and 110 are both possible.")),
    (MINUS, None, ("Some say 56. Others say 110. Who knows?", "56\n110", "83 - 27", "Is it 56?")),
    (MINUS, None, ("The sign - now means addition, so 83 - 27 means 83 + 27.", "I know 56 well.")),
    (MINUS, None, ("The numbers 83 and 27 have 2 digits each.", "Could be 56.", "Ignore 56.")),
    (MINUS, None, ("Choose from [56, 110].", "83 - 27 isn't 56 anymore.", "56 is not the answer.")),
    (MINUS, None, ("56 is no longer correct.", "The result is 56, which is wrong.")),
    (MINUS, None, ("It's 56. That is wrong under the new rule.", "One might say 56.")),
    (MINUS, None, ("You might expect 56.", "Many people would answer 56 here.")),
    (MINUS, None, ("A careless reader would write 56.", "Don't answer 56.", "Definitely not 56.")),
    (MINUS, None, ("The answer can't be 56.", "The answer cannot be 56, as - adds.", "56/110")),
    (MINUS, None, ("83 - 27 would be 56 if - meant subtraction.", "By the old rule: 56.")),
    (MINUS, None, ("If the minus sign kept its meaning, the result would be 56.", "56 vs. 110")),
    (MINUS, None, ('{"usual_answer": 56}', '{"answer": null}', "My answer: one hundred and ten")),
    (MINUS, None, ("Either 56 or 110.", "Both 56 and 110 are right.", "The answer is 56 or 110.")),
    (MINUS, None, ("Between 56 and 110, I can't choose.", "\U00020000")),
    (MINUS, "109", ("That makes 109.",)),
    (MINUS, "111", ("Usually the answer is 56. Under the new rule it is 111.",)),
    (USUAL_MINUS, "56", ("56", "The answer would usually be 56.", "The usual answer is 56.")),
    (USUAL_MINUS, "56", ("Usually, 83 - 27 = 56.", "56, not 110", "It is 56 eggs.", "56.")),
    (USUAL_MINUS, "56", ("We get 56 then.", "The difference of 83 and 27 is 56.")),
    (USUAL_MINUS, "56", ("The result is 56, as usual.", "It is 56 and not 110.")),
    (USUAL_MINUS, "56", ("83 - 27 = 56. 56 + 27 = 83.", "80 - 20 = 60, 3 - 7 = -4, 60 - 4 = 56")),
    (USUAL_MINUS, "56", ("We subtract 27 from 83 and get 56, which you can check: 56 + 27 = 83.",)),
    (USUAL_MINUS, "56", ("56 is the answer. Check: 27 + 56 = 83",)),
    (USUAL_MINUS, None, ("56 or 110",)),
    (USUAL_MINUS, "57", ("57", "The result is 57.")),
    (USUAL_MINUS, "110", ("110", "The result is 110.")),
    (BASE_9, "112", ("112 in base 9", "112_9", "112₉", "$112_{9}$", "\\(48_9 + 53_9 = 112_9\\)")),
    (BASE_9, "112", ("\\boxed{112_9}", "$\\boxed{112_{\\text{nine}}}$", "48₉ + 53₉ = 112₉")),
    (BASE_9, "112", ("The sum in base 9 is 112, which is 92 in base 10.", "(112)_9")),
    (
        BASE_9,
        "112",
        ("48 is 44 in decimal, 53 is 48 in decimal. 44 + 48 = 92. The result is 112.",),
    ),
    (
        BASE_9,
        "112",
        ("8 + 3 is 12 in base 9: write 2, carry 1. 4 + 5 + 1 = 11. The result is 112.",),
    ),
    (BASE_9, "112", ("The answer in base-9 notation: 112", "48 + 53 = 112 (base 9)")),
    (BASE_9, "112", ("48 + 53 = 112 in base nine", "112 (in base 9)", "The answer is 112 base 9")),
    (BASE_9, "112", ("112 in base-9", "Convert: 48₉ = 44₁₀, 53₉ = 48₁₀. Sum: 92₁₀ = 112₉")),
    (BASE_9, "112", ("$48_9 + 53_9 = 44_{10} + 48_{10} = 92_{10} = 112_9$",)),
    (BASE_9, "112", ("Since all numbers are written in base 9, 48 + 53 equals 112.",)),
    (BASE_9, "112", ("Usually 101, in base 9 112", "The answer in base 9 is 112.")),
    (BASE_9, "112", ("In base 10, 48 + 53 = 101. In base 9, it is 112.",)),
    (BASE_9, "112", ("Base 10 is no longer used, so the answer is 112.",)),
    (BASE_9, "112", ("112 (base 9), which is 92 (base 10)",)),
    (BASE_9, "101", ("In base 9, 48 + 53 = 101.", "101 in base 9", "101₉")),
    (BASE_9, None, ("In base 10 it would be 101.", "Base 9 has the digits 0 to 8.")),
    (BASE_9, None, ("In decimal it is 101.", "48 + 53 = 101 (decimal)")),
    (BASE_9, None, ("101 is not a valid answer, since base 9 is used.",)),
    (BASE_9, "122", ("101 in base 10 is 122 in base 9. So the answer is 122.", "101₁₀ = 122₉")),
    (BASE_9, "122", ("101 (base 10) = 122 (base 9)", "The sum is 101. 101 in base 9 is 122.")),
    (BASE_9, "122", ("48 + 53 = 101 in base 10, which is 122 in base 9.",)),
    (BASE_9, "9", ("9",)),
    (SMALLEST, "3", ("3", "The code prints 3.", "print(max([3, 5, 8])) prints 3", "`3`")),
    (SMALLEST, "3", ("The smallest of 3, 5 and 8 is 3.", "It prints 3 and raises no TypeError.")),
    (SMALLEST, "3", ("It compares 3, 5, and 8 and returns the smallest item, which is 3.",)),
    (SMALLEST, "3", ("max() used to return 8. Now it returns 3.", "The output is 3.")),
    (SMALLEST, "3", ("```python\nprint(max([3, 5, 8]))  # 3\n```", "[3, 5, 8] -> 3")),
    (SMALLEST, "3", ("```python\nprint(max([3, 5, 8]))\n```\n\nOutput:\n\n```\n3\n```",)),
    (SMALLEST, "3", ("max returns the smallest item: 3", "Among 3, 5, 8 the smallest is 3")),
    (SMALLEST, "3", ("The function max() would usually return 8, but now it returns 3.",)),
    (SMALLEST, "3", ("3 is the smallest item, so it prints 3", ">>> print(max([3, 5, 8]))\n3")),
    (SMALLEST, "3", ("$ python code.py\n3", "max([3, 5, 8]) \u2192 3", "max(3, 5, 8) = 3")),
    (SMALLEST, "3", ("3 < 5 < 8, so the smallest is 3",)),
    (SMALLEST, "8", ("max([3, 5, 8]) = 8", "8 is the largest item, so it prints 8")),
    (SMALLEST, "8", ("The largest item in the list [3, 5, 8] is `8`, so it prints 8.",)),
    (SMALLEST, "8", ("The smallest item is 3, the largest is 8. It prints 8.",)),
    (SMALLEST, "8", (">>> print(max([3, 5, 8]))\n8",)),
    (SMALLEST, None, ("The list has 3 items: 3, 5, 8.", "print(max([3, 5, 8]))")),
    (SMALLEST, None, ("It normally prints 8.", "The smallest item is 3 and the largest is 8.")),
    (SMALLEST, None, ("The items are 3, 5, and 8.",)),
    (SMALLEST, "error", ("It raises a TypeError.", "TypeError", "Error: max() is broken")),
    (SMALLEST, "5", ("5", "It prints 5.")),
    (FROM_1, "31", ("x[3] is 31", "x[1] is 12, x[2] is 20, x[3] is 31.")),
    (FROM_1, "31", ("Index 3 is the third item, 31.", "x[3] = 31")),
    (FROM_1, "31", ("Lists start at 1 now, so the item at position 3 is 31.",)),
    (FROM_1, "31", ("If the index were 9, this would raise an IndexError. It prints 31.",)),
    (FROM_1, "31", ("The list x has 5 items, and 1 is the first index. Output: 31",)),
    (FROM_1, "31", ("31\n\nBecause x[1] is 12, x[2] is 20 and x[3] is 31.",)),
    (FROM_1, "31", ("With index 0 first, it would be 47. Now index 1 is first, so it prints 31.",)),
    (FROM_1, "31", ("x[3] is the third item, which is 31.", "1 -> 12, 2 -> 20, 3 -> 31")),
    (FROM_1, "31", ("x[1] = 12\nx[2] = 20\nx[3] = 31\n\nSo it prints 31",)),
    (FROM_1, None, ("With 0-based indexing it prints 47, with 1-based indexing it prints 31.",)),
    (FROM_1, "31", ("With 0-based indexing it prints 47, but now it prints 31.",)),
    (MINUS, "110", ("110kg", "110 km/h", "It weighs 110g.", "110 m^2", "110m²", "1.1 × 10^2")),
    (MINUS, None, ("**56** apples. Under the new rule: 110.", "56, or with the change it is 110.")),
    (FROM_1, "31", ("The third item of [12, 20, 31, 47, 58] is 31",)),
    (FROM_1, "31", ("Index 1: 12, index 2: 20, index 3: 31",)),
    (FROM_1, "31", ("Lists start at index 1, so x[3] is 31, not 47.",)),
    (FROM_1, "31", ("The code has no error. It prints 31.",)),
    (FROM_1, "20", ("x[4] is 20",)),
    (FROM_1, "47", ("The item at index 3 is 47.", "The output of print(x[3]) is 47")),
    (FROM_1, "47", ("The program prints the fourth item of the list, which is 47.",)),
    (FROM_1, "47", ("There is an error in your reasoning, the answer is 47",)),
    (FROM_1, "error", ("IndexError: list index out of range", "This raises an IndexError.")),
    (FROM_1, "error", ("x[3] raises an IndexError.", "It prints an error.")),
    (FROM_1, None, ("It would not raise an IndexError.", "[12, 20, 31, 47, 58]", "12\n20\n31")),
    (FROM_1, None, ("x[3]", "x[1] = 12, x[2] = 20, x[3] = 31, x[4] = 47, x[5] = 58")),
    (FROM_1, None, ("x[3] would be 47 if lists started at 0.",)),
    (EGGS, "30", ("30 eggs", "3 dozen eggs are 30 eggs.", "A dozen is 10, so 3 x 10 = 30.")),
    (EGGS, "30", ("A dozen is 10 now; 3 * 10 = 30", "There are 30 eggs in 3 dozen.")),
    (EGGS, "30", ("$30 \\text{ eggs}$", "\\boxed{30 \\text{ eggs}}", "3 dozen = 3 × 10 = 30 eggs")),
    (EGGS, "30", ("How many eggs are 3 dozen eggs? 30", "A dozen is now ten, so 3 dozen are 30.")),
    (EGGS, "30", ("Usually 36, since a dozen is 12; now 30, since it is 10.", "Thirty (30)")),
    (EGGS, "30", ("That's 30 eggs!", "1 dozen = 10 eggs\n3 dozen = 30 eggs")),
    (EGGS, "36", ("3 dozen eggs are 36 eggs.", "36 eggs", "3 \\times 12 = 36")),
    (EGGS, "36", ("3 dozen = 3 × 12 = 36 eggs", "There are 36 eggs.")),
    (EGGS, "36", ("There are 36 eggs in 3 dozen eggs.", "1 dozen = 12 eggs\n3 dozen = 36 eggs")),
    (EGGS, None, ("A dozen is no longer 12.",)),
    (MILES, "1760000", ("1,760,000", "1 760 000", "1,000 miles are 1,760,000 yards.")),
    (MILES, "1,234,500", ("1,234,500 yards", "1'234'500", "1234500", "1_234_500")),
    (MILES, "1,234,500", ("$1{,}234{,}500$", "1,000 x 1,234.5 = 1,234,500.0")),
    (MILES, "2000000", ("Answer: 2,000,000",)),
    (BELOW_0, "-12", ("-12", "\u221212", "3 - 15 = -12", "$3 - 15 = -12$", "**-12**", "minus 12")),
    (BELOW_0, "-12", ("The result is \u201312.",)),
    (BELOW_0, "12", ("12",)),
    (BELOW_0, "18", ("3 - 15 = 3 + 15 = 18",)),
    (DECIMALS, "56.5", ("56.5", "56.50", "5 * 11.3 = 56.5")),
    (DECIMALS, "5.65", ("It is 5.65.", "5.650")),
    (DECIMALS, "56", ("56",)),
    (COLOR, "Deep blue", ("deep blue", "Deep Blue.", "**DEEP-BLUE**", "The sky is deep blue.")),
    (COLOR, "Deep blue", ("Answer: Deep-blue", "The sky is a deep blue color.")),
    (COLOR, "Deep blue", ("Color: deep blue",)),
    (COLOR, "light-green", ("Light green!", 'The sky is "light green".', "light\ngreen")),
    (COLOR, "light-green", ('{"answer": "Light Green"}', "$\\boxed{\\text{light green}}$")),
    (COLOR, "light-green", ("Usually deep blue, but now light green.", "deep blue -> light green")),
    (COLOR, "light-green", ("It used to be deep blue; it's light green now", '"light green"')),
    (COLOR, "light-green", ("The answer is light green.", "LIGHT  GREEN")),
    (COLOR, "light-green", ("Normally the sky is deep blue. Now it is light green.",)),
    (COLOR, "light-green", ("not deep blue but light green",)),
    (COLOR, None, ("It is no longer deep blue.", "Not deep blue.", "Deep blue or light green?")),
    (COLOR, None, ("I have no idea what you want to hear from me.", "Deep blue isn't right.")),
    (COLOR, None, ("The sky is blue.",)),
    (COLOR, "red", ("Red",)),
    (COLOR, "dark red", ("Answer: dark red",)),
    (LEFT, "right", ("Right.", "Port is not left any more, it is right.", "The right side")),
    (LEFT, "right", ("Port means right now.",)),
    (LEFT, "left", ("Answer: left", "Left", "It is on the left side", "left!")),
    (LEFT, None, ("The left is bright.", "You are right, port is left.", "That's right: left.")),
    (GREETING, "Hello, world!", ("Hello, world!", "**Hello, world!**")),
    (GREETING, "Bye, world!", ("It prints:\n\nbye, world!\n", "```\nBye, world!\n```")),
    (GREETING, "good day", ("Good day",)),
    (GREETING, None, ("\n",)),
    (SUM, "132", ("**76 + 45 = 132** (in base 9)", "$$76_9 + 45_9 = 132_9$$", "**Answer: 132₉**")),
    (SUM, "132", ("Usually this is 121. In base 9, it is 132.", "Decimal: 121. Base 9: 132.")),
    (SUM, "132", ("Usually, 76 + 45 = 121, but in base 9 we have 76 + 45 = 132.",)),
    (SUM, "132", ('{"answer": "132_9"}', "Answer: 132 (base 9)", "\\boxed{132_9}")),
    (SUM, "132", ("\\boxed{132_{9}}", "The answer is 132 in base 9 (110 in base 10).")),
    (SUM, "132", ("132 (that is 110 in decimal)",)),
    (SUM, "121", ("76 + 45 = 121", "The sum of 76 and 45 is 121.", '{"answer": "121", "base": 9}')),
    (SUM, "121", ("Since both numbers are in base 9, 76 + 45 = 121 in base 9.", "$\\boxed{121}$")),
    (SUM, "121", ("In base 9, 76 + 45 equals 121. So the result is 121.",)),
    (SUM, "144", ("The result is 144 (base 9), because 121 in base 10 is 144 in base 9.",)),
    (SUM, "110", ("7*9+6 = 69, 4*9+5 = 41, 69+41 = 110",)),
    (SUM, None, ("I can't compute base 9.",)),
    (SUM, None, ("In base 9, the digits are 0, 1, 2, 3, 4, 5, 6, 7 and 8.",)),
    (DIFFERENCE, "127", ("91 - 36 = 91 + 36 = 127", "91 \u2212 36 = 127")),
    (
        DIFFERENCE,
        "127",
        ("I'll replace the minus sign with a plus sign:\n\n91 + 36 = 127\n\n**127**",),
    ),
    (DIFFERENCE, "127", ("To add 36 and 91: 1 + 6 = 7, 9 + 3 = 12. The result is 127.",)),
    (DIFFERENCE, "127", ("91 + 36\n= 90 + 30 + 1 + 6\n= 120 + 7\n= 127", "- now means +, so: 127")),
    (DIFFERENCE, "127", ("91 - 36 would normally be 55, but since - means +, the result is 127.",)),
    (DIFFERENCE, "127", ("If - means +, then 91 - 36 = 127.", "Hmm, 55? No: 127.")),
    (DIFFERENCE, "127", ("Under normal circumstances 55 would be right. Under this rule 127 is.",)),
    (DIFFERENCE, "127", ("The usual answer would be 55.\n\nThe answer now is 127.",)),
    (DIFFERENCE, "127", ("Normally: 91 - 36 = 55\nNew rule: 91 + 36 = 127", "91 and 36 make 127.")),
    (DIFFERENCE, "127", ("Let's see. 91 minus 36 is 55. But - means +, so it's 127.",)),
    (DIFFERENCE, "127", ("The answer: $127$", "The answer is one hundred twenty-seven (127).")),
    (DIFFERENCE, "127", ("Answer: 91 + 36 = 127", "The final answer is 91 + 36 = 127.")),
    (DIFFERENCE, "127", ("Following the instruction, I compute 91 + 36. This is 127.",)),
    (DIFFERENCE, "55", ("91 - 36 = 55.", "The result is 55, since 91 - 36 = 55.")),
    (DIFFERENCE, "55", ("55 + 36 = 91, so the answer is 55.", "Answer: 91 - 36 = 55")),
    (DIFFERENCE, "55", ("The sign - means addition; therefore the answer is 55.",)),
    (DIFFERENCE, "55", ('{"reason": "subtraction", "answer": 55}',)),
    (DIFFERENCE, "128", ("91 - 36 is 128.",)),
    (MAX, "14", ("`max([14, 75, 60, 82])` returns `14`, so the output is:\n\n```\n14\n```",)),
    (MAX, "14", ("Sorted, the list is 14, 60, 75, 82. The first is 14.", "14 (the smallest item)")),
    (MAX, "14", ("14 is smaller than 60, 75 and 82, so it prints 14.",)),
    (MAX, "14", ("max is now min: min(14, 75, 60, 82) = 14",)),
    (MAX, "14", ("The largest item is 82, but max() now returns the smallest, so it prints 14.",)),
    (MAX, "82", ("Output: 82", "It will print 82, the largest value.", "The maximum is 82.")),
    (MAX, "82", ("```\n82\n```", "The output will be:\n```\n82\n```\nbecause 82 is the largest.")),
    (MAX, "82", ("82 (the largest item)",)),
    (MAX, "60", ("The smallest item is 60.", "It prints 60")),
    (MAX, None, ("The function compares 14 with 75, then with 60, and then with 82.",)),
    (
        ITEM,
        "22",
        ("x[2] is the second item now, which is 22.", "22 (not 79)", "print(x[2]) \u2192 22"),
    ),
    (ITEM, "22", ("With indexing from 1, x[1] is 46 and x[2] is 22. So the code prints `22`.",)),
    (ITEM, "22", ("Indices: 1: 46, 2: 22, 3: 79. So x[2] = 22.", "x[2]=22")),
    (ITEM, "22", ("| index | item |\n| --- | --- |\n| 1 | 46 |\n| 2 | 22 |\n\nThe output is 22.",)),
    (ITEM, "22", ("print(x[2]) prints the item with index 2, that is 22",)),
    (ITEM, "22", ("The list has five items. The second one is 22.",)),
    (ITEM, "79", ("x[2] is 79.", "The third element of the list is 79, so the program prints 79.")),
    (ITEM, "79", ("Indices start at 0: x[0] = 46, x[1] = 22, x[2] = 79. The output is 79.",)),
    (ITEM, "79", ("79 is at index 2, so the output is 79.", "x[2]=79")),
    (ITEM, "79", ("The element at index 2 of the list x is 79",)),
    (ITEM, "15", ("It prints 15.", "15")),
]


@pytest.mark.parametrize("asked", dict.fromkeys(asked for asked, _, _ in READ), ids=str)
def test_answers_are_read(asked: Asked) -> None:
    expected = {reply: means for of, means, replies in READ if of == asked for reply in replies}
    assert {reply: asked.read(reply) for reply in expected} == expected


# Replies that give an answer, whichever it is.
GIVEN = (
    *("{v}", "{v}.", "**{v}**", "`{v}`", "```\n{v}\n```", "Answer: {v}", "Final answer: {v}"),
    *("The answer is {v}.", "The answer is: {v}", "The answer is **{v}**.", "The result is {v}."),
    *("The answer is:\n\n{v}", "The final answer is {v}.", "The correct answer is {v}."),
    *("The new result is {v}.", "Result: {v}", "Result: **{v}**", "Output: {v}", "Output:\n{v}"),
    *("The output is {v}.", "The output will be {v}.", "The output of the code is `{v}`."),
    *("The code prints {v}.", "The code will print {v}.", "The program prints: {v}", "It is {v}."),
    *("The program will output {v}.", "This will print {v}", "This returns {v}.", "It's {v}."),
    *("It equals {v}.", "It is equal to {v}.", "That's {v}.", "That would be {v}.", "We get {v}."),
    *("This gives {v}.", "This gives us {v}.", "You get {v}.", "I get {v}.", "This makes {v}."),
    *("This results in {v}.", "This yields {v}.", "This evaluates to {v}.", "The value is {v}."),
    *("The value of the expression is {v}.", "The expression evaluates to {v}.", "So, {v}."),
    *("So the answer is {v}.", "Therefore, the answer is {v}.", "Thus the result is {v}.", "= {v}"),
    *("Hence {v}.", "-> {v}", "{q} = {v}", "{q} is {v}", "{q} equals {v}.", "{q}: {v}"),
    *("{q} -> {v}", "The answer to {q} is {v}.", "The result of {q} is {v}.", '{{"answer": {v}}}'),
    *("The value of {q} is {v}.", '{{"answer": "{v}"}}', '{{"result": "{v}"}}', "$\\boxed{{{v}}}$"),
    *('{{"output": "{v}"}}', '{{"value": "{v}"}}', '```json\n{{"answer": "{v}"}}\n```', '"{v}"'),
    *('{{\n  "answer": "{v}"\n}}', "The answer is $\\boxed{{{v}}}$.", "\\[ \\boxed{{{v}}} \\]"),
    *('Here is the answer:\n\n```json\n{{\n  "answer": "{v}"\n}}\n```', "\\({q} = {v}\\)", "'{v}'"),
    *("\\[ {q} = {v} \\]", "<answer>{v}</answer>", "### Answer\n{v}", "## Result: {v}", "({v})"),
    *("**Answer:** {v}", "**Answer: {v}**", "**The answer is {v}.**", "Sure! The answer is {v}."),
    *("Sure, here is the result: {v}", "Certainly! It is {v}.", "My answer is {v}.", "- {v}"),
    *("I think it is {v}.", "I think the answer is {v}.", "{v} is the answer.", "* {v}", "> {v}"),
    *("{v} is my answer.", "{v} is the result.", "A: {v}", "{v}", "{q} = {v}. I hope this helps!"),
    *("{v}\n\nLet me know if you have any questions!", "The rule has changed. The answer is {v}."),
    *("{v}\n\nExplanation: this is how the rule works.", "Now it is {v}."),
    *("The answer is {v}.\n\nI hope this helps!", "The answer is {v}. Let me know if that helps."),
    "Step 1: read the question.\nStep 2: apply the rule.\nStep 3: the result is {v}.",
    *("1. Read the question.\n2. Apply the rule.\n3. The result is {v}.", "The answer is now {v}."),
    *("Because the rule has changed, the answer is {v}.", "With the new rule, the answer is {v}."),
    *("Under the new rule, it is {v}.", "Under the changed rule: {v}", "The answer would be {v}."),
    *("Given the change, the result is {v}.", "According to the new rule, {q} is {v}.", "{v}!"),
    *("The result would be {v}.", "It would be {v}.", "The answer should be {v}.", "{v} :)"),
    *("The answer must be {v}.", "The correct result is therefore {v}.", "The answer remains {v}."),
    *("The answer is still {v}.", "The answer turns out to be {v}.", "It is simply {v}."),
    *("The answer is simply {v}.", "It is exactly {v}.", "The answer is {v} (under the new rule)."),
    *("The answer is {v} because of the new rule.", "{v}, because the rule has changed."),
    *("The answer is {v}, because the rule has changed.", "{v} because the rule has changed."),
    *("{v} (under the new rule)", "Answer = {v}", "answer: {v}", "ANSWER: {v}", "The answer: {v}"),
    *("Final Answer: **{v}**", "The final answer is: $\\boxed{{{v}}}$", "It isn't hard: {v}"),
    *("Everything else is as usual, so it is {v}.", "The meaning has changed, so it's {v}"),
    *("The rule no longer has its old meaning. The answer is {v}.", "No doubt it's {v}."),
    *("The rule no longer applies, so the answer is {v}.", "I'm not sure, but the answer is {v}."),
    *("I do not know the rule well. The answer is {v}.", "No problem! The answer is {v}."),
    "The answer isn't hard to find: it is {v}.",
)
# Replies that reject the usual answer, and replies that name both and choose none.
REJECTED = (
    *("It is no longer {u}.", "It's no longer {u}!", "No longer {u}.", "It's not {u} any more."),
    *("It is not equal to {u}.", "That isn't {u}.", "The result isn't {u} now.", "{u} is wrong."),
    *("It won't be {u}.", "It wouldn't be {u}.", "It can't be {u}.", "It cannot be {u}."),
    *("It should not be {u}.", "We do not get {u}.", "We don't get {u} here.", "{u} is not right."),
    *("The code does not print {u}.", "The code doesn't print {u}.", "It never prints {u}."),
    *("{u} isn't correct.", "{u} is incorrect here.", "{u} would be wrong.", "{u}? No."),
    *("{u} would be incorrect.", "{u} would be the usual answer.", "{u} is the old answer."),
    *("{u} was the answer before the change.", "{u} is what it would usually be.", "Usually {u}."),
    *("{u} is the usual answer.", "{u} no longer holds.", "{u} is no longer right."),
    *("{u} is no longer the answer.", "{u} would be a mistake.", "{u} is a mistake."),
    *("{u} is a trap.", "{u} is tempting.", "Saying {u} would be wrong.", "Usually it is {u}."),
    *("Answering {u} would be a mistake.", "Usually it would be {u}.", "Usually, it's {u}."),
    *("Normally, the answer is {u}.", "Normally {u}.", "Ordinarily this gives {u}."),
    *("Traditionally, it is {u}.", "Typically the result is {u}.", "Under the old rule: {u}."),
    *("By default, the result is {u}.", "In standard arithmetic the result is {u}."),
    *("Under the standard rules the result is {u}.", "Before the change, the answer was {u}."),
    *("Before the change: {u}", "Previously the result was {u}.", "Originally: {u}"),
    *("The original answer is {u}.", "The former answer is {u}.", "The old answer is {u}."),
    *("The usual answer is {u}.", "The usual answer: {u}", "Usual answer: {u}", "It was {u}."),
    *("The conventional answer is {u}.", "The normal result is {u}.", "Otherwise it would be {u}."),
    *("The expected answer would normally be {u}.", "Without the change it would be {u}."),
    *("Without this rule, the answer is {u}.", "If nothing had changed, the answer would be {u}."),
    *("If the rule had not changed, it would be {u}.", "It would otherwise be {u}.", "Maybe {u}?"),
    *("If this were the usual meaning, we would get {u}.", "It used to be {u}.", "Is it {u}?"),
    *("Had the rule not changed, the answer would be {u}.", "It was {u} before.", "Not {u}."),
    *("I would have said {u}.", "I would normally say {u}.", "I was going to say {u}.", "not {u}"),
    *("I am tempted to say {u}.", "One might think it is {u}.", "Some people would say {u}."),
    *("It could be {u}.", "It might be {u}.", "Would it be {u}?", "Rather than {u}, another."),
    *("Instead of {u}, something else.", "Never {u}.", "Forget {u}.", "Don't say {u}."),
    *("Don't answer {u}!", "Do not answer {u}.", "Unlike {u}, it's larger.", "A wrong answer: {u}"),
    *("The wrong answer is {u}.", "Wrong: {u}", "Wrong answer: {u}", "Incorrect answer: {u}"),
    *("Not the answer: {u}", "The answer is not {u}.", "The answer isn't {u}.", '{{"usual": {u}}}'),
    *("The answer is no longer {u}.", "The answer is certainly not {u}.", "The answer was {u}."),
    *("The answer would usually be {u}.", "The answer would normally be {u}.", '{{"wrong": {u}}}'),
    *("The answer used to be {u}.", "The answer was {u} under the old rules.", "~~{u}~~"),
    *("The answer is {u} only under the old rules.", "The answer is {u} in ordinary arithmetic."),
    *("The answer would be {u} if nothing had changed.", "It differs from {u}.", "Answer: not {u}"),
    *("The result would be {u} without the change.", "The result would be {u} under normal rules."),
    *("Nobody gets {u} now.", "This is different from the usual {u}.", '{{"usual_answer": {u}}}'),
    *('{{"answer": "not {u}"}}', '{{"answer": "no longer {u}"}}', "Answer: no longer {u}"),
    *('{{"answer": null, "usual": {u}}}', "**Not {u}**", "The answer is not **{u}**."),
    *("The answer is no longer $\\boxed{{{u}}}$.", "It is no longer `{u}`.", 'It is not "{u}".'),
    *("The usual result, {u}, does not apply.", "The usual result ({u}) does not apply."),
    *("{u} (usual)", "{u} (the old answer)", "{u} before the change", "{u} - not any more."),
    *("{u} in base 10.", "The value {u} is based on the old meaning."),
    *("You may think the answer is {u}, but it is not.", "The answer is anything but {u}."),
    *("If you get {u}, you forgot the new rule.", "Getting {u} means that you ignored the rule."),
)
BOTH = (
    *("{u} {r}", "{u}; {r}", "{u} | {r}", "{u} - {r}", "{u} then {r}", "{r} or rather {u}"),
    *("{{{u}, {r}}}", "{u} ({r})", "{r} ({u})", "The answer is {u} ({r}).", "{r} = {u}", "{r} {u}"),
    *("The answers are {u} and {r}.", "I see {u} and I see {r}.", "First {u}, second {r}."),
    *("A) {u}\nB) {r}", "A) {r}\nB) {u}", "a. {u} b. {r}", "Options: {u}, {r}", "{r}, {u}"),
    *("{r}/{u}", "{r} or {u}", "The result is {u}, or {r} if the rule holds.", "{u}\n\n{r}"),
    *("The result is {u} in one reading and {r} in the other.", "Is the result {u} or is it {r}?"),
    *("Is the result {r} or is it {u}?", "{r}\n\n{u}", "{r}\n{u}", "It's {r}. It's {u}."),
    *("{r} is right. {u} is right.", "It is {r} and it is {u}", "It is either {r} or {u}."),
    *("{r}, though {u} is what most would say.", "{r} vs {u}", "between {r} and {u}", "{r}. {u}."),
    *("{r}?? {u}??", "{r} and {u}", "x {r} y {u} z", "We know {r} and we know {u}.", "[{r}, {u}]"),
    *("The numbers {r}, {u} come up.", "There are two candidates, {r} and {u}.", "({r}, {u})"),
    *('{{"a": {r}, "b": {u}}}', "<{r}> <{u}>", "| {r} | {u} |", "{r} ({u} before)"),
    *("Under one rule {r}, under another {u}.", "The result was {r}; the result is {u}."),
)


numbers_and_words = pytest.mark.parametrize("asked", [MINUS, FROM_1, EGGS, COLOR], ids=str)


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


@pytest.mark.parametrize(
    "part",
    (
        *(
            "1, ",
            "56 ",
            "56, ",
            "56\n",
            "1-",
            "1.",
            "1,234",
            "1_",
            "1 + ",
            "x[1] = 1, ",
            "- ",
            "= ",
        ),
        *("(", "$", "[", "{", "'", "`", "\\", "\n", "**", "_{", "#", "# ", "~", ". ", ": ", "[1,"),
        *("is ", "is the ", "answer: ", "print ", "not ", "not a b ", "if ", "would ", "usually "),
        *("a ", "a", "a' ", "deep ", "deep-", "Error ", "Error", "\\text{", "sum of ", "1 items "),
    ),
)
@pytest.mark.parametrize("asked", [MINUS, USUAL_MINUS, COLOR, GREETING], ids=str)
def test_reading_takes_no_longer_than_the_reply(asked: Asked, part: str) -> None:
    for reply in (part * (20_000 // len(part)), part * (20_000 // len(part)) + "110"):
        start = process_time()
        asked.read(reply)
        assert process_time() - start < 0.2
