"""The configured defences of one owner, folded in order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vflens.errors import PluginError
from vflens.plugins.defense import Context, Defense, NamedDefense
from vflens.plugins.memory import Memory
from vflens.randomness import stream
from vflens.types import Array, Claim, Exchange, Owner, Phase

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from vflens.models.part import Penalty, Wrap

_REMEMBERING = ("on_update", "on_received")


class Acted(NamedTuple):
    """The positions of the defences that acted: ``anywhere``, and of those ``on_wire`` the ones that acted on
    more than what is granted.
    """

    anywhere: Sequence[int] = ()
    on_wire: Sequence[int] = ()


class DefenseChain:
    """The configured defences of one owner, folded in order; records which of them ever acted.

    Args:
        owner: the owner as it is now.
        defenses: each with its name.
        secret: of the owner; a defence gets keys below it (:class:`Context`).
        nonce: of the owner's start.
        parameters: what a defence that ``needs_parameters`` is fitted to; None where there are none.
        common: the secret that the data parties share.
        report: is called with what :meth:`Context.suspect` records: defence's name, exchange, score, alarm.
    """

    def __init__(
        self,
        owner: Callable[[], Owner],
        defenses: Sequence[NamedDefense],
        secret: bytes,
        nonce: str = "",
        parameters: Callable[[], Mapping[str, Array]] | None = None,
        *,
        common: bytes = b"",
        report: Callable[[str, Exchange, float, bool], None] = lambda *suspicion: None,
    ) -> None:
        self._owner, self._parameters, self._report = owner, parameters, report
        self._secret, self._nonce, self._common = secret, nonce, common
        self.named = tuple(defenses)
        self.defenses = tuple(defense for _, defense in defenses)
        self.memory = Memory()
        self._states: dict[int, Mapping[str, Array]] = {}
        self._fired: set[int] = set()
        self._on_wire: set[int] = set()  # of those, by more than grants
        self._by_hook: dict[str, list[int]] = {}
        for position, defense in enumerate(self.defenses):
            for hook in defense.hooks():
                self._by_hook.setdefault(hook, []).append(position)

    def overrides(self, hook: str) -> bool:
        """Whether a configured defence overrides ``hook``."""
        return hook in self._by_hook

    def fold(self, hook: str, value: Any, exchange: Exchange, rows: Array) -> Any:
        """``value`` after every defence that overrides ``hook``, in configured order; float32 goes through
        them as float64.

        Raises:
            PluginError: a defence returned NaN, or something of another shape.
        """
        positions = self._by_hook.get(hook, ())
        narrow = bool(positions) and isinstance(value, np.ndarray) and value.dtype == np.float32
        if narrow:
            value = value.astype(np.float64)
        for position in positions:
            if value is None:  # withheld: no value is left to defend
                break
            value = self._apply(position, hook, value, exchange, rows)
        return value.astype(np.float32) if narrow else value

    def wrap(self, exchange: Exchange) -> Wrap:
        """What puts every defence that overrides ``wrap_model`` around a new module, in configured order.

        It holds their contexts and not the secret: a family of models may come from another package.
        """
        defenses, noted = self._at_start("wrap_model", exchange), (self._fired, self._on_wire)

        def wrapped(module: Module) -> Module:
            for position, defense, context in defenses:
                module = defense.wrap_model(module, context)
                _note(position, noted)
            return module

        return wrapped

    def penalty(self, exchange: Exchange) -> Penalty | None:
        """What gives the sum of the terms that defences add to a batch's loss; None if there are none.

        It too holds contexts and not the secret.
        """
        defenses, noted = self._at_start("penalty", exchange), (self._fired, self._on_wire)

        def added(module: Module, h: Tensor, private: Tensor) -> Tensor:
            total = h.new_zeros(())
            for position, defense, context in defenses:
                term = defense.penalty(module, h, private, context)
                _check_term(defense, term)
                total = total + term
                _note(position, noted)
            return total

        return added if defenses else None

    def unfired(self) -> list[str]:
        """The names of the configured defences that never acted: none of their hooks fired, or on empty
        arrays only.
        """
        return [name for position, (name, _) in enumerate(self.named) if position not in self._fired]

    def on_grants_only(self) -> list[str]:
        """The names of the defences that acted on what is granted only, and on nothing that training or
        predictions send.
        """
        return [self.named[position][0] for position in sorted(self._fired - self._on_wire)]

    @property
    def acted(self) -> Acted:
        """The positions of the defences that acted so far."""
        return Acted(sorted(self._fired), sorted(self._on_wire))

    def restore(self, acted: Acted) -> None:
        """Take up :attr:`acted` of an earlier process."""
        self._fired.update(acted.anywhere)
        self._on_wire.update(acted.on_wire)

    def restore_hook(self, hook: str) -> None:
        """Note that an earlier process called ``hook`` with numbers, in training or in predictions."""
        self._note_training(self._by_hook.get(hook, ()))

    def excuse(self) -> None:
        """Note that nothing was sent, so that no defence had to act."""
        self._note_training(range(len(self.named)))

    def _note_training(self, positions: Iterable[int]) -> None:
        """Note that the defences at ``positions`` acted on more than grants."""
        for position in positions:
            _note(position, (self._fired, self._on_wire))

    def claims(self) -> list[Claim]:
        """What each defence that was fitted guarantees."""
        return [self.defenses[position].claim(state) for position, state in self._states.items()]

    def claims_at(self, hook: str) -> list[Claim]:
        """What each defence that overrides ``hook`` guarantees of one exchange."""
        return [self.defenses[p].claim(self._state(p)) for p in self._by_hook.get(hook, ())]

    def _apply(self, position: int, hook: str, value: Any, exchange: Exchange, rows: Array) -> Any:
        defense = self.defenses[position]
        context = self.context(position, hook, exchange, rows)
        try:
            result = getattr(defense, hook)(value, context)
        except SystemExit as error:  # a plug-in must not end the process
            raise PluginError(f"{hook} of {type(defense).__name__} ended with SystemExit: {error}") from error
        if _holds_numbers(value):
            self._fired.add(position)
            if exchange.phase is not Phase.DISCLOSE or hook == "on_dataset":  # a grant is not on the wire
                self._on_wire.add(position)
        if isinstance(value, np.ndarray):
            _check_result(defense, hook, value, result)
        for name, tensor in result.items() if isinstance(result, Mapping) else ():
            _check_result(defense, hook, value.get(name, tensor), tensor)
        if context.memory:
            self.memory.keep(position, _number(hook, exchange), context.memory)
        return result

    def _at_start(self, hook: str, exchange: Exchange) -> list[tuple[int, Defense, Context]]:
        """The defences that override ``hook``, which is not called exchange by exchange."""
        nothing = np.zeros(0, np.int32)
        return [
            (position, self.defenses[position], self.context(position, hook, exchange, nothing))
            for position in self._by_hook.get(hook, ())
        ]

    def context(self, position: int, hook: str, exchange: Exchange, rows: Array) -> Context:
        """What the defence at ``position`` gets in its ``hook``."""
        kept = self.memory.before(position, _number(hook, exchange)) if hook in _REMEMBERING else {}
        report = partial(self._report, self.named[position][0], exchange)
        return Context(
            self._owner(),
            exchange,
            rows,
            self._state(position),
            hook=hook,
            position=position,
            secret=self._secret,
            nonce=self._nonce,
            common=self._common,
            memory=kept,
            report=report,
        )

    def _state(self, position: int) -> Mapping[str, Array]:
        if position not in self._states:
            defense, owner = self.defenses[position], self._owner()
            if defense.needs_parameters and self._parameters is not None:
                owner = replace(owner, parameters=self._parameters())
            self._states[position] = defense.fit(owner, stream(self._secret, "defense fit", position))
        return self._states[position]


def _note(position: int, noted: tuple[set[int], set[int]]) -> None:
    """Add ``position`` to each set; who holds them cannot reach the chain, nor its secret."""
    for positions in noted:
        positions.add(position)


def _number(hook: str, exchange: Exchange) -> int:
    """What counts the calls of ``hook``, which remembers the one before: steps, or a client's rounds."""
    return exchange.step if hook == "on_received" else exchange.round


def _check_result(defense: Defense, hook: str, before: Array, after: Any) -> None:
    name = type(defense).__name__
    if not isinstance(after, np.ndarray) or after.shape != before.shape:
        raise PluginError(
            f"{name}.{hook} must return an array of shape {before.shape}, it returned "
            f"{getattr(after, 'shape', after)!r}"
        )
    if np.isnan(after).any():
        raise PluginError(
            f"{name}.{hook} returned NaN: return −inf for impossible classes, finite numbers elsewhere"
        )


def _check_term(defense: Defense, term: Any) -> None:
    number = getattr(term, "ndim", None) == 0
    if not number or not math.isfinite(float(term.detach())):
        raise PluginError(
            f"{type(defense).__name__}.penalty must return one finite number as a tensor, it returned "
            f"{term.item() if number else getattr(term, 'shape', term)!r}"
        )


def _holds_numbers(value: Any) -> bool:
    """Whether there is anything to defend in ``value``: not an array without rows or columns; models are not
    inspected.
    """
    parts = value.values() if isinstance(value, Mapping) else [value]
    return any(not isinstance(part, np.ndarray) or part.size > 0 for part in parts)
