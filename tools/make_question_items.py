"""Makes the items of the shipped question habits.

    python tools/make_question_items.py FOLDER

Writes a JSONL file for each change: 1,000 items and then 200 controls, whose usual answer stays
right, both in random order. No right answer is a likely slip of the usual one. Only
``Random.random`` is used, which returns the same numbers in every version of Python.
"""

import json
import sys
from collections.abc import Iterable
from itertools import combinations_with_replacement, product
from pathlib import Path
from random import Random
from typing import TypeVar

T = TypeVar("T")
Item = dict[str, str]

ITEMS, CONTROLS, SEED = 1000, 200, 0
LISTS = 4000  # drawn, of which the items and controls are the first and the last ones that fit
# At later indices, models more often miscount and give the item that is right after the change.
INDICES = (1, 2, 3)


def base_9(random: Random) -> tuple[list[Item], list[Item]]:
    """Make sums that carry from the ones and the tens in both bases; controls have no carry.

    A carry in base 9 adds 1 to its column, so the answers differ by 11. One carry alone would make
    1 or 10, as likely slips do. In three of five sums, one number has three digits.
    """
    short, long = range(10, 89), range(100, 789)
    both_short, one_long = combinations_with_replacement(short, 2), product(long, short)
    items, controls = [], []
    for pairs, fifths in ((both_short, 2), (one_long, 3)):
        valid = [(a, b) for a, b in shuffled(pairs, random) if "9" not in f"{a} {b} {a + b}"]
        sums = [base_9_item(a, b, random) for a, b in valid if not is_right_by_error(a, b)]
        items += [item for item in sums if difference(item) == 11][: fifths * ITEMS // 5]
        controls += [item for item in sums if difference(item) == 0][: fifths * CONTROLS // 5]
    return shuffled(items, random), shuffled(controls, random)


def base_9_item(a: int, b: int, random: Random) -> Item:
    first, second = shuffled((a, b), random)
    return as_item(f"{first} + {second}", a + b, add_in_base_9(a, b))


def add_in_base_9(a: int, b: int) -> int:
    return to_base_9(int(str(a), 9) + int(str(b), 9))


def to_base_9(number: int) -> int:
    return number if number < 9 else 10 * to_base_9(number // 9) + number % 9


def is_right_by_error(a: int, b: int) -> bool:
    """Whether the right answer is also that of converting both to base 9 and adding as usual."""
    return to_base_9(a) + to_base_9(b) == add_in_base_9(a, b)


def difference(item: Item) -> int:
    return int(item["right"]) - int(item["usual"])


def minus_means_plus(random: Random) -> tuple[list[Item], list[Item]]:
    """Make differences of two-digit numbers; controls are sums of other such numbers."""
    pairs = [(a, b) for a in range(21, 100) for b in range(11, a - 9)]
    pairs = [(a, b) for a, b in pairs if a - b != b and not is_slip(a - b, a + b)]
    pairs = shuffled(pairs, random)
    items = [as_item(f"{a} - {b}", a - b, a + b) for a, b in pairs[:ITEMS]]
    return items, [as_item(f"{a} + {b}", a + b) for a, b in pairs[-CONTROLS:]]


def is_slip(usual: int, right: int) -> bool:
    """Whether one answer looks like the other with a slip, such as a forgotten carry."""
    short, long = sorted(map(str, (usual, right)), key=len)
    rest = iter(long)
    return (
        abs(usual - right) in (*range(12), 100)
        or usual % 10 == right % 10
        or sorted(short) == sorted(long)  # transposed digits
        or all(digit in rest for digit in short)  # omitted digits
    )


def max_returns_smallest(random: Random) -> tuple[list[Item], list[Item]]:
    """Make calls of max(); controls are an item at an index or the length of a list."""
    lists = random_lists((4, 5, 6), random)
    usable = [x for x in lists if is_clear(max(x), min(x))]
    items = [as_item(f"print(max({x}))", max(x), min(x)) for x in usable[:ITEMS]]
    lengths = [as_item(f"print(len({x}))", len(x)) for x in lists[-CONTROLS // 2 :]]
    indexed = [(x, pick(INDICES, random)) for x in lists[-CONTROLS : -CONTROLS // 2]]
    by_index = [as_item(f"print({x}[{index}])", x[index]) for x, index in indexed]
    return items, shuffled(lengths + by_index, random)


def lists_start_at_1(random: Random) -> tuple[list[Item], list[Item]]:
    """Make items at an index that exists under both rules; controls are max(), min() and len()."""
    lists = random_lists((4, 5, 6, 7), random)
    indexed = [(x, pick(INDICES, random)) for x in lists]
    usable = [(x, index) for x, index in indexed if is_clear(x[index], x[index - 1])]
    items = [as_item(f"x = {x}\nprint(x[{i}])", x[i], x[i - 1]) for x, i in usable[:ITEMS]]
    return items, [call_control(x, random) for x in lists[-CONTROLS:]]


def call_control(x: list[int], random: Random) -> Item:
    function, answer = pick((("max", max(x)), ("min", min(x)), ("len", len(x))), random)
    return as_item(f"x = {x}\nprint({function}(x))", answer)


def random_lists(lengths: tuple[int, ...], random: Random) -> list[list[int]]:
    """Return lists of different two-digit numbers."""
    return [shuffled(range(10, 100), random)[: pick(lengths, random)] for _ in range(LISTS)]


def is_clear(usual: int, right: int) -> bool:
    """Whether the answers have no digit in common and are not close to each other."""
    return abs(usual - right) > 11 and not set(str(usual)) & set(str(right))


def as_item(question: str, usual: int, right: int | None = None) -> Item:
    """Return an item as in the file; without ``right`` it is a control."""
    return {"question": question, "usual": str(usual), "right": str(right or usual)}


def pick(values: Iterable[T], random: Random) -> T:
    return shuffled(values, random)[0]


def shuffled(values: Iterable[T], random: Random) -> list[T]:
    return sorted(values, key=lambda _: random.random())


def main(folder: Path) -> None:
    for make in (base_9, minus_means_plus, max_returns_smallest, lists_start_at_1):
        key = make.__name__.replace("_", "-")
        items, controls = make(Random(f"{SEED} {key}"))
        lines = [json.dumps(item) + "\n" for item in items + controls]
        (folder / f"{key}.jsonl").write_bytes("".join(lines).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
