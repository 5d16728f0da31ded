"""Bottom and top models that learn step by step, and whose whole state is named arrays.

torch's generator and a passport's keys are functions of the part's keys and the exchange, so a step
computed again (a retry, a restart) gives the same bits.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vflens.errors import StorageError
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.architectures import DTYPES, bottom, top
from vflens.models.networks.device import placed
from vflens.models.networks.generator import keyed
from vflens.models.networks.layers import NEVER_DRAW, BatchNormModule, Moments
from vflens.models.networks.parameters import to_arrays
from vflens.models.networks.passport import PassportLayer, with_folded
from vflens.models.part import Keys, LossGradient, Optimize, Penalty, Wrap, as_agreed, plain
from vflens.models.settings import Training
from vflens.models.softmax_regression import loss_gradient
from vflens.numerics.optimizer import OPTIMIZERS, Optimizer
from vflens.randomness import exchange_names
from vflens.types import Array, ColumnInfo, Exchange, Phase


class _Model:
    """Named modules under one optimiser. The penalty l2·Σθ² has the gradient 2·l2·θ; biases may be spared."""

    def __init__(
        self,
        modules: Mapping[str, nn.Module],
        wraps: Mapping[str, Wrap],
        training: Training,
        keys: Keys,
        *,
        precision: str,
        device: str,
    ) -> None:
        self._dtype, self._device = DTYPES[precision], placed(device)
        numbers = torch.finfo(self._dtype)
        self._negligible = numbers.tiny / numbers.eps**2  # what it absorbs is near the smallest normal number
        for module in modules.values():
            module.to(self._device)  # after the draws: the start is the same on every device
        # Taken before any defence wraps the modules: its keys and autoencoder are never among them.
        self._exported = {
            name if len(modules) == 1 else f"{part}.{name}": tensor
            for part, module in modules.items()
            for name, tensor in module.state_dict(keep_vars=True).items()
        }
        self.module = nn.ModuleDict({part: wraps.get(part, plain)(m) for part, m in modules.items()})
        self.module.to(self._device)  # what defences added
        self._keys = keys
        modules_by_name = dict(self.module.named_modules())
        self._rekeyed = {n: m for n, m in modules_by_name.items() if hasattr(m, "rekey")}
        self._draws = any(type(m) not in (*NEVER_DRAW, PassportLayer) for m in modules_by_name.values())
        self._norms = [m for m in modules_by_name.values() if isinstance(m, BatchNormModule)]
        learned = [p for p in self.module.parameters() if p.requires_grad]
        self._theta, self._gradient = map(self._vector, _flattened(learned, self._dtype, self._device))
        penalised = [np.full(p.numel(), training.penalise_bias or p.dim() > 1) for p in learned]
        penalty = 2 * training.l2 * np.concatenate([np.zeros(0, bool), *penalised])
        self._penalty = self._vector(_tensor(penalty).to(self._device))
        # Not torch's: the first of its optimisers takes seconds to import what it never uses here.
        self._training = training
        self._optimizer = self._new_optimizer()

    def _new_optimizer(self) -> Optimizer:
        kind, rate = OPTIMIZERS[self._training.optimizer], self._training.learning_rate
        return kind(len(self._theta), rate, self._zeros)

    def parameters(self) -> dict[str, Array]:
        """Copies of the registered architecture's parameters, with a batch norm's running moments; a
        defence's own are never among them.
        """
        return to_arrays(self._exported)

    def take(self, parameters: Mapping[str, Array]) -> None:
        with torch.no_grad():
            for name, value in parameters.items():
                self._exported[name].copy_(_tensor(value))
        self._optimizer = self._new_optimizer()

    def state(self) -> dict[str, Array]:
        """All that training changed, for :meth:`load`; it stays with its owner."""
        named = {f"model/{n}": _array(t).copy() for n, t in self.module.state_dict().items()}
        kept = self._optimizer.state().items()
        return named | {f"optimizer/{n}": _array(a) if isinstance(a, Tensor) else a for n, a in kept}

    def load(self, state: Mapping[str, Array]) -> None:
        """Take up :meth:`state`.

        Raises:
            StorageError: it is the state of another architecture.
        """
        own = {f"model/{n}": t for n, t in self.module.state_dict().items()}
        odd = [n for n, t in own.items() if n not in state or state[n].shape != tuple(t.shape)]
        if odd:
            raise StorageError(
                f"the checkpoint does not fit this party's network at {odd[0]!r}: resume with the same model "
                "and table"
            )
        self.module.load_state_dict({n.removeprefix("model/"): _tensor(state[n]) for n in own})
        prefix = "optimizer/"
        kept = {n.removeprefix(prefix): a for n, a in state.items() if n.startswith(prefix)}
        self._optimizer.load(
            {n: self._vector(_tensor(a).to(self._device)) if a.ndim else a for n, a in kept.items()}
        )

    @contextmanager
    def _at(self, exchange: Exchange, *row: int) -> Iterator[None]:
        """With torch's generator (of one ``row``, where it is given) and the defences' secrets keyed to
        ``exchange``; all predictions of a model share theirs.
        """
        training = exchange.phase is Phase.TRAIN
        if not training:  # else a row's embedding would depend on the request it is asked in
            exchange = exchange._replace(step=0)
        if self.module.training is not training:
            self.module.train(training)
        names = exchange_names(exchange)
        for name, module in self._rekeyed.items():
            module.rekey(self._keys.rekeys.stream(*names, name))
        with keyed(self._keys.draws.stream(*names, *row)) if self._draws else nullcontext():
            yield

    @contextmanager
    def _alone(self, exchange: Exchange, row: int) -> Iterator[None]:
        """See :meth:`_at`; batch norms have their running moments, whatever the phase."""
        with self._at(exchange, row):
            for norm in self._norms:
                norm.eval()
            try:
                yield
            finally:
                for norm in self._norms:
                    norm.train(self.module.training)

    def _backward(self, output: Tensor, gradient: Array, added: Tensor | None) -> None:
        """The gradient of all parameters from the loss's in ``output`` and what defences ``added`` to it."""
        self._gradient[:] = 0
        # The product has this gradient; given as such, torch imports sympy for a second to check its shape.
        loss = torch.dot(output.flatten(), self._placed(gradient).flatten())
        torch.autograd.backward(loss if added is None else loss + added)

    def _moments(self) -> list[Moments | None]:
        """The moments of each batch norm in the batch that was computed last."""
        return [norm.moments for norm in self._norms]

    def _apply(self, gradient: Any, moments: Sequence[Moments | None]) -> None:
        """One optimiser step from ``gradient``, which is used up; running moments follow ``moments``."""
        for norm, batch in zip(self._norms, moments, strict=True):
            norm.learn(batch)
        gradient += self._penalty * self._theta
        self._optimizer.update(self._theta, gradient)
        # Rounds what is negligible to zero: the penalty shrinks the weights of dead units until they are
        # subnormal numbers, which some processors multiply slowly (docs/performance.md, small choices).
        self._theta += self._negligible
        self._theta -= self._negligible

    def _placed(self, array: Array) -> Tensor:
        """``array`` where the modules are, in their precision."""
        return _tensor(array).to(self._device, self._dtype)

    def _vector(self, tensor: Tensor) -> Any:
        """What the optimiser works on: on the processor NumPy's view of ``tensor``, whose calls cost less."""
        return tensor.numpy() if self._device.type == "cpu" else tensor

    def _zeros(self, shape: tuple[int, ...]) -> Any:
        return self._vector(torch.zeros(shape, dtype=torch.float64, device=self._device))


class Bottom(_Model):
    """A party's bottom model: embeds, then learns from the gradient in its embedding."""

    def __init__(
        self,
        network: SplitNetwork,
        columns: Sequence[ColumnInfo],
        training: Training,
        keys: Keys,
        wrap: Wrap = plain,
        *,
        penalty: Penalty | None = None,
        optimize: Optimize = as_agreed,
        device: str = "cpu",
    ) -> None:
        self._added_by = penalty
        with keyed(keys.draws.stream("bottom")):
            modules, wraps = {"bottom": bottom(network, columns)}, {"bottom": wrap}
            super().__init__(modules, wraps, training, keys, precision=network.precision, device=device)
        self._optimizer = optimize(self._optimizer, len(self._theta), self._zeros)
        self._pending: tuple[Exchange, Tensor, list[Moments | None]] | None = None

    def forward(self, x: Array, exchange: Exchange) -> Array:
        """The embedding (n, width) of ``x`` (n, d), in the network's precision."""
        training = exchange.phase is Phase.TRAIN
        with self._at(exchange), torch.set_grad_enabled(training):
            embedding: Tensor = self.module["bottom"](self._placed(x))
        if training:
            self._pending = exchange, embedding, self._moments()
        return _array(embedding)

    def copied(self, exchange: Exchange) -> nn.Module:
        """A copy of the module (n, d) → (n, width) behind its defences, under the keys of ``exchange``.

        Its parameters can be trained, and training leaves this model as it is.
        """
        with self._at(exchange):
            return deepcopy(self.module["bottom"])

    def learn(self, x: Array, gradient: Array, exchange: Exchange) -> None:
        """One optimiser step from the gradient (n, width) of the mean loss of ``x``, sent in ``exchange``."""
        if self._pending is None or self._pending[0] != exchange:  # after a restart
            self.forward(x, exchange)
        assert self._pending is not None
        (_, embedding, moments), self._pending = self._pending, None
        added = self._added_by and self._added_by(self.module["bottom"], embedding, self._placed(x))
        self._backward(embedding, gradient, added)
        self._apply(self._gradient, moments)


class Top(_Model):
    """The active party's models: its own bottom, if it holds columns, and the top.

    ``width`` is that of the passive parties' combined embeddings, ``peers`` are these parties' columns.
    Defences ``wrap`` the top model, or the own bottom model (``wraps_bottom``).
    """

    def __init__(
        self,
        network: SplitNetwork,
        columns: Sequence[ColumnInfo],
        *,
        width: int,
        classes: int,
        training: Training,
        keys: Keys,
        wrap: Wrap = plain,
        penalty: Penalty | None = None,
        device: str = "cpu",
        peers: Sequence[Sequence[ColumnInfo]] = (),
        wraps_bottom: bool = False,
    ) -> None:
        self._added_by = penalty
        own = [network.embedding_width(columns)] if columns else []
        combined = network.combined_width([width, *own], classes)
        with keyed(keys.draws.stream("top")):
            modules = {"bottom": bottom(network, columns)} if columns else {}
            modules["top"] = top(network, combined, classes, [*peers, columns])
            wraps = {"bottom" if wraps_bottom else "top": wrap}
            super().__init__(modules, wraps, training, keys, precision=network.precision, device=device)
        self._sums, self._combined = network.combine == "sum", combined

    def forward(self, x: Array, exchange: Exchange) -> Array:
        """Nothing (n, 0): the own embedding stays with the top model."""
        return np.zeros((len(x), 0))

    def loss_gradient(self, received: Array, x: Array, y: Array, exchange: Exchange) -> LossGradient:
        """Mean cross-entropy against soft labels ``y`` (n, k).

        The gradient in ``received`` (n, width) is that of the sum with what defences add to it.
        """
        embedding = self._placed(received).requires_grad_()
        with self._at(exchange):
            logits = self._logits(embedding, x)
        moments = self._moments()
        loss, gradient = loss_gradient(_array(logits), y)
        gradient[np.abs(gradient) < self._negligible] = 0  # see _apply: of rows that are almost certain
        added = self._added_by and self._added_by(self.module["top"], embedding, self._placed(y))
        self._backward(logits, gradient, added)
        assert embedding.grad is not None
        own = deepcopy(self._gradient)  # the next batch's takes its place
        return LossGradient(loss, _array(embedding.grad), lambda: self._apply(own, moments))

    def log_scores(self, received: Array, x: Array, exchange: Exchange) -> Array:
        """Log-probabilities float64 (n, k)."""
        with self._at(exchange), torch.no_grad():
            logits = self._logits(self._placed(received), x)
            return _array(torch.log_softmax(logits.to(torch.float64), dim=1))

    def embeddings(self, x: Array, exchange: Exchange) -> Array:
        """See :meth:`vflens.models.part.Showing.embeddings`."""
        rows = []
        for i in range(len(x)):
            with self._alone(exchange, i), torch.no_grad():
                rows.append(_array(self.module["bottom"](self._placed(x[i : i + 1]))))
        return np.concatenate(rows)

    def row_gradients(self, received: Array, x: Array, y: Array, exchange: Exchange) -> dict[str, Array]:
        """See :meth:`vflens.models.part.Showing.row_gradients`."""
        rows = []
        for i in range(len(x)):
            one = slice(i, i + 1)
            with self._alone(exchange, i):
                logits = self._logits(self._placed(received[one]), x[one])
            self._backward(logits, loss_gradient(_array(logits), y[one])[1], None)
            learned = {n: t.grad for n, t in self._exported.items() if t.grad is not None}
            rows.append({name: _array(gradient).copy() for name, gradient in learned.items()})
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def predicting(self, exchange: Exchange) -> dict[str, Array]:
        """The parameters of both models as they give the predictions of ``exchange``, by part and name: a
        passport's γ and β are folded into its layer.

        Empty where another defence stands inside the top model: then it is no registered one.
        """
        with self._at(exchange), torch.no_grad():
            self.module["top"](torch.zeros((1, self._combined), dtype=self._dtype, device=self._device))
            acting = with_folded(deepcopy(self.module)).state_dict()
        part = "" if len(self.module) > 1 else "top."
        registered = {f"{part}{n}": tensor for n, tensor in self._exported.items()}
        return to_arrays(registered | acting) if set(acting) <= set(registered) else {}

    def _logits(self, embedding: Tensor, x: Array) -> Tensor:
        if "bottom" in self.module:
            own = self.module["bottom"](self._placed(x))
            embedding = embedding + own if self._sums else torch.cat([embedding, own], dim=1)
        logits: Tensor = self.module["top"](embedding)
        return logits


def _flattened(
    parameters: Sequence[nn.Parameter], dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """All ``parameters``, and all their gradients, as one vector each that shares their memory."""
    size = sum(p.numel() for p in parameters)
    theta, gradient = (torch.zeros(size, dtype=dtype, device=device) for _ in range(2))
    start = 0
    for parameter in parameters:
        part = slice(start, start + parameter.numel())
        theta[part] = parameter.detach().flatten()
        parameter.data = theta[part].view(parameter.shape)
        parameter.grad = gradient[part].view(parameter.shape)
        start = part.stop
    return theta, gradient


def _tensor(array: Array) -> Tensor:
    """``array`` as a tensor of its own memory where torch may write, else a copy."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _array(tensor: Tensor) -> Array:
    result: Array = tensor.detach().cpu().numpy()
    return result
