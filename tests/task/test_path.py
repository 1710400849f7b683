"""The way of a bare move: from the server's response to the sample, through few modules."""

import sys
from pathlib import Path
from types import FrameType

import cant_do_that_anymore
from cant_do_that_anymore import Spec, evaluate
from loopback import serving
from planted_models import habit
from testing import positions

SOURCE = Path(cant_do_that_anymore.__file__).parent
MOST_MODULES = 14


def test_a_bare_move_passes_few_modules_until_it_is_scored() -> None:
    passed: dict[str, None] = {}
    is_on_its_way = False

    def record(frame: FrameType, event: str, argument: object) -> None:
        nonlocal is_on_its_way
        name, file = frame.f_code.co_name, Path(frame.f_code.co_filename)
        if not file.is_relative_to(SOURCE):
            return
        module = file.relative_to(SOURCE).with_suffix("").as_posix()
        if (module, name, event) == ("providers/openai_api", "answer_in", "call"):
            passed.clear()
            is_on_its_way = True
        if is_on_its_way and event == "call":
            passed[module] = None
        if (module, name, event) == ("task/samples", "sample", "return"):
            is_on_its_way = False

    with serving(habit, model="m") as server:
        spec = Spec(model="m", base_url=server.url, dataset=positions(1), max_connections=1)
        sys.setprofile(record)
        try:
            evaluate(spec, quiet=True)
        finally:
            sys.setprofile(None)
    del passed["interrupts"]  # it awaits the whole evaluation
    assert {"providers/responses", "client/cache", "task/scorer"} <= passed.keys()
    assert len(passed) <= MOST_MODULES, list(passed)
