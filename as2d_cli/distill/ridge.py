"""The best linear map, in closed form: where training begins."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from as2d_cli.distill.batches import Batch
from as2d_cli.distill.network import Adapter

__all__ = ["fit_ridge"]

_PENALTY = 1e-3


def fit_ridge(adapter: Adapter, batches: Iterable[Batch]) -> float:
    """Sets the adapter's first layer to the ridge regression from encoder output to hints.

    Inputs are layer-normed, so the penalty is the same for all: ``_PENALTY`` of their mean square.

    Returns:
        The share of the hints' variance that the map explains, on the same windows.
    """
    inputs = adapter.join.in_features
    outputs = adapter.join.out_features
    gram = torch.zeros(inputs + 1, inputs + 1, dtype=torch.float64)
    cross = torch.zeros(inputs + 1, outputs, dtype=torch.float64)
    square = torch.zeros((), dtype=torch.float64)
    total = torch.zeros(outputs, dtype=torch.float64)
    with torch.no_grad():
        for batch in batches:
            x, y = _pairs(adapter, batch)
            gram += (x.T @ x).double()
            cross += (x.T @ y).double()
            square += y.double().square().sum()
            total += y.double().sum(0)
        count = gram[-1, -1]
        penalty = torch.eye(inputs + 1, dtype=torch.float64)
        penalty[-1, -1] = 0
        penalty *= _PENALTY * gram.diagonal()[:-1].mean()
        weights = torch.linalg.solve(gram + penalty, cross)
        adapter.join.weight.copy_(weights[:-1].T)
        adapter.join.bias.copy_(weights[-1])
        error = square - 2 * (weights * cross).sum() + (weights * (gram @ weights)).sum()
        variance = square - total.square().sum() / count
    return float(1 - error / variance)


def _pairs(adapter: Adapter, batch: Batch) -> tuple[Tensor, Tensor]:
    """Normed inputs with a one behind them [n, inputs + 1], hints [n, outputs]."""
    windows, lines, width = batch.encoding.shape
    pool = adapter.join.in_features // width
    joined = adapter.norm(batch.encoding.float().reshape(windows, lines // pool, pool * width))
    x = joined[batch.hinted]
    return torch.cat([x, torch.ones(len(x), 1)], 1), batch.hints[batch.hinted]
