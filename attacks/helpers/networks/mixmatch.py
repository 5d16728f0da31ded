"""MixMatch (Berthelot et al., 2019) as Fu et al. (2022) complete a model with it: sharpened guesses for
unlabelled rows, and mixtures of rows and of labels; without augmentation.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import swa_utils

from vflens.models.networks.layers import learn_moments
from vflens.plugins.steps import Steps, silent
from vflens.types import Progress

# As in Fu et al.: T, α, λ_u, the learning rate and the decay of the weights of its steps, rows of each batch.
_TEMPERATURE, _MIXING, _UNLABELLED = 0.8, 0.75, 50.0
_RATE, _DECAY, _BATCH = 2e-3, 0.02, 16
# Theirs averages over 1,000 of 5,120 steps (.999); fewer steps keep the share, else the start would weigh.
_MEMORY = 1000 / 5120


def mixmatch(
    model: nn.Module,
    labelled: tuple[Tensor, Tensor],
    unlabelled: Callable[[int], Tensor],
    *,
    steps: int,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> nn.Module:
    """The running average of ``model``, which learns from ``labelled`` rows (m, d) of classes (m,), and from
    ``unlabelled(n)``: n rows (n, d), drawn anew.

    ``model`` makes logits (n, k) of rows. Each step takes 16 rows of both kinds; the weight of the
    unlabelled ones grows evenly to λ_u.
    """
    x, y = labelled
    decay = 1 - 1 / max(1.0, _MEMORY * steps)
    average: Any = swa_utils.get_ema_multi_avg_fn  # torch leaves it untyped
    averaged = swa_utils.AveragedModel(model, multi_avg_fn=average(decay), use_buffers=True)
    learned = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=_RATE, weight_decay=_DECAY)
    model.train()
    count = Steps(progress, "learning", steps)
    for step in range(steps):
        drawn = rng.integers(len(x), size=_BATCH)
        optimizer.zero_grad()
        weight = _UNLABELLED * step / steps
        loss = _loss(model, (x[drawn], y[drawn], unlabelled(_BATCH)), weight, rng)
        torch.autograd.backward(loss)
        optimizer.step()
        learn_moments(model)
        averaged.update_parameters(model)
        count()
    return averaged.eval()


def _loss(
    model: nn.Module, batch: tuple[Tensor, Tensor, Tensor], weight: float, rng: np.random.Generator
) -> Tensor:
    """Cross-entropy of the mixed labelled rows, and ``weight`` · squared error of the mixed guesses.

    ``batch``: labelled rows (b, d), their classes (b,), and unlabelled rows (b, d).
    """
    x, y, unlabelled = batch
    with torch.no_grad():
        guessed = sharpened(torch.softmax(model(unlabelled), dim=1))
    labels = nn.functional.one_hot(y, guessed.shape[1]).to(guessed)
    rows, targets = torch.cat([x, unlabelled]), torch.cat([labels, guessed])
    share = rng.beta(_MIXING, _MIXING)
    share, order = max(share, 1 - share), torch.from_numpy(rng.permutation(len(rows)))
    rows, targets = (share * t + (1 - share) * t[order] for t in (rows, targets))
    logits = model(rows)
    supervised = nn.functional.cross_entropy(logits[: len(x)], targets[: len(x)])
    distance = torch.softmax(logits[len(x) :], dim=1) - targets[len(x) :]
    return supervised + weight * (distance**2).mean()


def sharpened(p: Tensor) -> Tensor:
    """p^(1/T) over its sum, row by row: the likelier classes become likelier (n, k)."""
    powers = p ** (1 / _TEMPERATURE)
    return powers / powers.sum(dim=1, keepdim=True)
