"""Datasets exported for training and testing, and the example of a training environment."""

import json
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cant_do_that_anymore import read_positions, rules_named
from testing import cdta

EXAMPLE = Path(__file__).parents[2] / "examples" / "verifiers_env.py"


def export(*arguments: object) -> list[dict[str, Any]]:
    done = cdta("dataset", "export", *arguments, code=0)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_pools_are_exported_by_name(tmp_path: Path) -> None:
    sizes = {name: len(export(name)) for name in ("pool", "diagonal", "common")}
    assert sizes == {"pool": 19_841, "diagonal": 2_250, "common": 3_973}
    exported_file = tmp_path / "common.jsonl"
    done = cdta("dataset", "export", "common", "-o", exported_file, code=0)
    assert done.stderr == f"3,973 items in {exported_file}\n"
    assert len(read_positions(exported_file, rules_named("bishops-as-knights"))) == 3_973
    assert "did you mean 'common'?" in cdta("dataset", "export", "comon", code=2).stderr


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The example, with stubs for the libraries that are not installed."""

    class SingleTurnEnv(SimpleNamespace):
        pass

    for name, attributes in (
        ("verifiers", {"Rubric": SimpleNamespace, "SingleTurnEnv": SingleTurnEnv}),
        ("datasets", {"Dataset": SimpleNamespace(from_list=list)}),
    ):
        if not find_spec(name):
            module = ModuleType(name)
            vars(module).update(attributes)
            monkeypatch.setitem(sys.modules, name, module)
    spec = spec_from_file_location("verifiers_env", EXAMPLE)
    assert spec and spec.loader
    loaded = module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_training_environment_rewards_legal_moves(example: ModuleType) -> None:
    environment = example.load_environment(n=2)
    assert type(environment).__name__ == "SingleTurnEnv"
    dataset = list(environment.dataset)
    assert len(dataset) == 4
    rewards = []
    for row in dataset:
        info = json.loads(row["info"])
        reply = [{"role": "assistant", "content": info["next_filtered_moves"][0]}]
        rewards.append((info["condition"], example.legal_move(reply, info)))
        assert example.legal_move([{"role": "assistant", "content": "I resign."}], info) == 0
    assert rewards == [("standard", 1.0), ("changed", 0.0)] * 2
