"""The trained network as an ONNX file with eight bits a weight."""

import json
from hashlib import sha256
from pathlib import Path

import torch
from model import Pocket
from torch import Tensor, nn
from torch.export import Dim
from torch.nn.utils import parametrize

ONNX_OPSET = 23
"""The first with an operator for attention, which onnxruntime computes faster than its parts."""


class EightBits(nn.Module):
    """A matrix as integers from -127 to 127 and one scale a row."""

    def forward(self, integers: Tensor, scales: Tensor) -> Tensor:
        return integers.float() * scales

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        scales = weight.abs().amax(1, keepdim=True) / 127
        return (weight / scales).round().to(torch.int8), scales


def quantise(network: Pocket) -> None:
    """Hold every matrix in eight bits from here on; the arithmetic stays in full precision."""
    network.requires_grad_(False)
    for module in list(network.modules()):
        if isinstance(module, nn.Linear | nn.Embedding):
            parametrize.register_parametrization(module, "weight", EightBits())


def export(network: Pocket, moves: list[str], folder: Path) -> None:
    """Write ``pocket.onnx`` and ``pocket.json``, which names its tokens and pins its bytes."""
    program = torch.onnx.export(
        network,
        (torch.zeros(2, 3, dtype=torch.int64), True),
        input_names=["tokens"],
        output_names=["scores"],
        dynamic_shapes=({0: Dim.DYNAMIC, 1: Dim.DYNAMIC}, None),
        opset_version=ONNX_OPSET,
    )
    model = program.model_proto
    for node in model.graph.node:
        node.ClearField("metadata_props")  # stack traces with the paths of this machine
    packed = model.SerializeToString()
    (folder / "pocket.onnx").write_bytes(packed)
    about = {
        "sha256": sha256(packed).hexdigest(),
        "context": network.place.weight.shape[0],
        "moves": moves,
    }
    (folder / "pocket.json").write_text(json.dumps(about) + "\n")
