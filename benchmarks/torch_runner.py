"""The workloads in PyTorch: ours, and the stock layers of the framework."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.workloads import LAYER, MINILM, Attention, Calls, token_ids
from torch_impl import Encoder, MultiHeadAttention


def attention(workload: Attention) -> Calls:
    """Return one multi-head attention, forward."""
    x, ours, stock = _attention_pair(workload)
    ours, stock = ours.eval(), stock.eval()
    return {
        "ours": _forward(lambda: ours(x, x, x, need_weights=False)[0]),
        "stock": _forward(lambda: stock(x, x, x, need_weights=False)[0]),
    }


def attention_with_weights(workload: Attention) -> Calls:
    """Return one multi-head attention that also gives its weights, forward."""
    x, ours, stock = _attention_pair(workload)
    ours, stock = ours.eval(), stock.eval()
    return {
        "ours": _forward(lambda: ours(x, x, x)),
        "stock": _forward(lambda: stock(x, x, x, average_attn_weights=False)),
    }


def attention_gradient(workload: Attention) -> Calls:
    """Return one multi-head attention, forward and backward."""
    x, ours, stock = _attention_pair(workload)
    return {
        "ours": _gradient(ours, lambda: ours(x, x, x, need_weights=False)[0]),
        "stock": _gradient(stock, lambda: stock(x, x, x, need_weights=False)[0]),
    }


def minilm() -> Calls:
    """Return a 6-layer encoder of MiniLM's sizes, forward."""
    ids = torch.from_numpy(token_ids())
    ours = Encoder.from_config(MINILM).eval()
    embed = ours.embedding
    stock = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(
            LAYER.d_model, LAYER.num_heads, LAYER.d_ff, activation="gelu", batch_first=True
        ),
        MINILM.num_layers,
    ).eval()
    return {
        "ours": _forward(lambda: ours(ids).output),
        "stock": _forward(lambda: stock(embed(ids))),
    }


def _attention_pair(workload: Attention) -> tuple[Tensor, nn.Module, nn.Module]:
    ours = MultiHeadAttention(workload.d_model, workload.num_heads)
    stock = nn.MultiheadAttention(workload.d_model, workload.num_heads, batch_first=True)
    return torch.from_numpy(workload.inputs()), ours, stock


def _forward(call: Callable[[], object]) -> Callable[[], object]:
    return torch.inference_mode()(call)


def _gradient(module: nn.Module, call: Callable[[], Tensor]) -> Callable[[], object]:
    parameters = tuple(module.parameters())
    return lambda: torch.autograd.grad(call().sum(), parameters)
