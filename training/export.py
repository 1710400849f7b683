"""Writes a trained network as an ONNX file with 8 bits per weight.

python training/export.py --habit pocket.pt --reader dose-0.05.pt --words words.json --out OUT
"""

import argparse
import json
from hashlib import sha256
from pathlib import Path

import torch
from games import vocabulary
from model import Reader, load_reader
from torch import Tensor, nn
from torch.export import Dim
from torch.nn.utils import parametrize

ONNX_OPSET = 23
"""The first opset with an attention operator, which onnxruntime runs faster than its parts."""


class EightBitWeight(nn.Module):
    """Stores a matrix as integers from -127 to 127 and one scale per row."""

    def forward(self, integers: Tensor, scales: Tensor) -> Tensor:
        return integers.float() * scales

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        scales = weight.abs().amax(1, keepdim=True) / 127
        return (weight / scales).round().to(torch.int8), scales


def quantize(network: nn.Module) -> None:
    """Store every matrix in 8 bits; arithmetic stays in full precision."""
    network.requires_grad_(False)
    for module in list(network.modules()):
        if isinstance(module, nn.Linear | nn.Embedding):
            parametrize.register_parametrization(module, "weight", EightBitWeight())


def rounded_weights(network: nn.Module) -> dict[str, Tensor]:
    """Return the weights of a quantized network under their original names."""
    state = network.state_dict()
    weights = {name: state[name] for name in state if "parametrizations" not in name}
    for name, module in network.named_modules():
        if parametrize.is_parametrized(module):
            weights[f"{name}.weight"] = module.weight
    return {name: weight.cpu() for name, weight in weights.items()}


def export(reader: Reader, moves: list[str], words: list[str], folder: Path) -> None:
    """Write ``pocket.onnx``, and ``pocket.json`` with its tokens and its digest."""
    text, tokens = torch.zeros(1, 3, dtype=torch.int64), torch.zeros(2, 4, dtype=torch.int64)
    program = torch.onnx.export(
        reader,
        (text, tokens, True),
        input_names=["text", "tokens"],
        output_names=["scores"],
        dynamic_shapes=({1: Dim.DYNAMIC}, {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}, None),
        opset_version=ONNX_OPSET,
    )
    model = program.model_proto
    for node in model.graph.node:
        node.ClearField("metadata_props")  # stack traces with local paths
    serialized = model.SerializeToString()
    (folder / "pocket.onnx").write_bytes(serialized)
    metadata = {
        "sha256": sha256(serialized).hexdigest(),
        "context": reader.habit.place.weight.shape[0],
        "moves": moves,
        "words": words,
    }
    (folder / "pocket.json").write_text(json.dumps(metadata) + "\n")


def main() -> None:
    """Export a reader that train_reader.py trained."""
    parser = argparse.ArgumentParser(description="Write the ONNX file of a reader.")
    for name in ("habit", "reader", "words", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    words = json.loads(options.words.read_text())
    reader = load_reader(options.habit, options.reader)
    quantize(reader)
    export(reader, list(vocabulary().values()), words, options.out)


if __name__ == "__main__":
    main()
