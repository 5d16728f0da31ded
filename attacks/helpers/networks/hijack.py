"""What attacks that hijack a target's model share: a pilot, its inverse, a critic, and how they learn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from vflens.attacks.helpers.networks.decoder import decoder
from vflens.attacks.helpers.networks.inversion import array, target_model
from vflens.attacks.helpers.networks.learning import descend
from vflens.models.networks.generator import keyed
from vflens.models.networks.parameters import from_arrays, to_arrays
from vflens.plugins.declared import Audited
from vflens.plugins.malicious import Sender, SendingAttack
from vflens.plugins.views.vertical import AdversaryView
from vflens.randomness import Key, exchange_names
from vflens.types import Array, Estimate, Exchange, Knowledge, statuses

_STEP, _MEAN, _SQUARE = "step", "exp_avg", "exp_avg_sq"  # what torch's Adam keeps of a parameter


class EmbeddedRows(NamedTuple):
    """Embeddings ``h`` (n, w) and their labels ``y`` (n, k)."""

    h: Tensor
    y: Tensor


class HijackingAttack(SendingAttack):
    """A pilot f̃ and its inverse d learn from public rows, min ‖d(f̃(x)) − x‖², and a critic to tell f̃(x) from
    the target's embeddings h. What is sent draws h to f̃(x), and d inverts it.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.EMBEDDINGS, Knowledge.ARCHITECTURE, Knowledge.METADATA, Knowledge.PUBLIC}
    )
    audited: ClassVar[Audited | None] = None

    updates: int = Field(1, ge=1, le=1_000, description="own steps of learning in each step of training")
    rate: float = Field(0.002, gt=0, allow_inf_nan=False, description="Adam's rate of its own networks")
    batch: int = Field(64, ge=1, le=1_000_000, description="public rows in each of its steps")
    hidden: int = Field(16, ge=1, le=4_096, description="units of the inverse and the critic, in eighths")
    penalty: float = Field(
        10.0, ge=0, allow_inf_nan=False, description="weight of the critic's gradient penalty"
    )
    strength: float = Field(1.0, gt=0, allow_inf_nan=False, description="factor of the gradient that is sent")

    @abstractmethod
    def verdicts(self, classes: int) -> int:
        """How many numbers a critic gives for a row, of so many ``classes``."""

    @abstractmethod
    def sent(self, critic: nn.Module, target: EmbeddedRows) -> Tensor:
        """The loss whose gradient in the ``target``'s embeddings is sent."""

    @abstractmethod
    def judged(self, critic: nn.Module, pilot: EmbeddedRows, target: EmbeddedRows, mixing: Tensor) -> Tensor:
        """The loss of the ``critic`` itself, of as many rows of either side; ``mixing`` (n, 1) is uniform."""

    def sender(self, view: AdversaryView, key: Key) -> Sender:
        with keyed(key.stream("start")):
            networks = self._networks(view)
        return _Hijack(self, networks, EmbeddedRows(*_public(view, networks.device)), key)

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d): d of the embeddings, inside [0, 1]. See
        :meth:`vflens.plugins.attack.Attack.reconstruct`.
        """
        with keyed(rng):
            networks = self._networks(view)
        networks.load(view.sending())
        with torch.no_grad():
            h = torch.tensor(view.embeddings(), dtype=torch.float64, device=networks.device)
            x = array(networks.inverse(h).clamp(0, 1))
        return Estimate(view.target, view.rows, x, statuses(len(x)))

    def _networks(self, view: AdversaryView) -> _Networks:
        return _Networks(view, self.hidden, self.verdicts(view.n_classes))


def distance(critic: nn.Module, pilot: Tensor, target: Tensor, mixing: Tensor, penalty: float) -> Tensor:
    """The loss of a ``critic`` whose first verdict tells embeddings (n, w) of both sides apart, with the
    ``penalty`` of its slope: Gulrajani et al., 2017, algorithm 1.
    """
    between = (mixing * pilot + (1 - mixing) * target).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between)[:, 0].sum(), between, create_graph=True)
    steep = ((slope.norm(dim=1) - 1) ** 2).mean()
    loss: Tensor = critic(target)[:, 0].mean() - critic(pilot)[:, 0].mean() + penalty * steep
    return loss


def _public(view: AdversaryView, device: torch.device) -> tuple[Tensor, Tensor]:
    """The public rows, and their labels (M, k)."""
    labels = np.eye(view.n_classes)[view.own_public()[1]]
    return torch.tensor(view.public(), device=device), torch.tensor(labels, device=device)


class _Networks(nn.Module):
    """Pilot, inverse and critic in float64."""

    def __init__(self, view: AdversaryView, hidden: int, verdicts: int) -> None:
        super().__init__()
        self.pilot = target_model(view).eval()  # dropout would draw from a stream that no restart repeats
        self.device = next(self.pilot.parameters()).device
        self.inverse = decoder(self.pilot, view.metadata(), hidden).to(self.device)
        with torch.no_grad():
            one = torch.zeros((1, len(view.metadata())), dtype=torch.float64, device=self.device)
            width = self.pilot(one).shape[1]
        layers = nn.Linear(width, 8 * hidden), nn.LeakyReLU(0.2), nn.Linear(8 * hidden, verdicts)
        self.critic = nn.Sequential(*layers).to(self.device, torch.float64)

    def load(self, state: Mapping[str, Array]) -> None:
        """Take up the networks in the ``state`` of a sending part."""
        from_arrays(self, {n.removeprefix("net/"): a for n, a in state.items() if n.startswith("net/")})


class _Hijack:
    """The sending part: networks, their optimisers, the public rows."""

    def __init__(self, of: HijackingAttack, networks: _Networks, public: EmbeddedRows, key: Key) -> None:
        self._of, self._net, self._key, self._public = of, networks, key, public
        coder = [*networks.pilot.parameters(), *networks.inverse.parameters()]
        self._coding = torch.optim.Adam(coder, lr=of.rate)
        self._judging = torch.optim.Adam(networks.critic.parameters(), lr=of.rate, betas=(0.5, 0.9))

    def gradient(self, embedding: Array, labels: Array, exchange: Exchange) -> Array:
        target = self._taken(embedding, labels)
        loss = self._of.strength * self._of.sent(self._net.critic, target)
        (found,) = torch.autograd.grad(loss, target.h)
        return array(found).astype(embedding.dtype)

    def learn(self, embedding: Array, labels: Array, exchange: Exchange) -> None:
        rng, target = self._key.stream(*exchange_names(exchange)), self._taken(embedding, labels)
        for _ in range(self._of.updates):
            rows = rng.integers(len(self._public.h), size=self._of.batch)
            x, y = self._public.h[rows], self._public.y[rows]
            z = self._net.pilot(x)
            descend(self._coding, ((self._net.inverse(z) - x) ** 2).mean())
            mixing = torch.tensor(rng.random((self._of.batch, 1)), device=x.device)
            drawn = rng.integers(len(embedding), size=self._of.batch)
            false = EmbeddedRows(target.h.detach()[drawn], target.y[drawn])
            loss = self._of.judged(self._net.critic, EmbeddedRows(z.detach(), y), false, mixing)
            descend(self._judging, loss)

    def state(self) -> dict[str, Array]:
        networks = {f"net/{n}": a for n, a in to_arrays(self._net.state_dict()).items()}
        return networks | _kept("coding", self._coding) | _kept("judging", self._judging)

    def load(self, state: Mapping[str, Array]) -> None:
        self._net.load(state)
        for name, optimizer in (("coding", self._coding), ("judging", self._judging)):
            _resume(name, optimizer, state)

    def _taken(self, embedding: Array, labels: Array) -> EmbeddedRows:
        h, y = (torch.tensor(a, dtype=torch.float64, device=self._net.device) for a in (embedding, labels))
        return EmbeddedRows(h.requires_grad_(), y)


def _learned(optimizer: torch.optim.Adam) -> Sequence[Tensor]:
    found: Sequence[Tensor] = optimizer.param_groups[0]["params"]
    return found


def _kept(name: str, optimizer: torch.optim.Adam) -> dict[str, Array]:
    """What ``optimizer`` keeps of each parameter; nothing before its first step."""
    states = ((i, optimizer.state.get(p, {})) for i, p in enumerate(_learned(optimizer)))
    return {f"{name}/{i}/{what}": array(t).copy() for i, kept in states for what, t in kept.items()}


def _resume(name: str, optimizer: torch.optim.Adam, state: Mapping[str, Array]) -> None:
    for i, parameter in enumerate(_learned(optimizer)):
        kept = {w: state[f"{name}/{i}/{w}"] for w in (_STEP, _MEAN, _SQUARE) if f"{name}/{i}/{w}" in state}
        if kept:
            found = {w: torch.tensor(np.array(a)) for w, a in kept.items()}
            # Adam counts its steps on the processor.
            optimizer.state[parameter] = {w: t if w == _STEP else t.to(parameter) for w, t in found.items()}
