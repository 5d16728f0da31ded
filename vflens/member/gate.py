"""The release gate: whatever leaves a party is defended once, sealed, and kept for a retry.

Three rules, by phase:

* TRAIN: the last exchange of each point is kept; asked again, it is answered, not drawn again. A step keeps
  its rows, and a row is released once an epoch, after a restart too.
* PREDICT: a row is released once per model version. Rows asked again come from the log, so repeating a
  query never yields a fresh draw of noise.
* DISCLOSE: one release per (point, exchange), whoever receives it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path

import numpy as np

from vflens.errors import DefenseError, ProtocolError, StateError
from vflens.member.recovery import check_state
from vflens.member.released_rows import RowLog
from vflens.member.step_log import StepLog
from vflens.plugins.chain import DefenseChain
from vflens.plugins.defense import GATE_HOOKS
from vflens.storage.chain import Head
from vflens.storage.files import repeats
from vflens.storage.journal import Journal
from vflens.storage.release_digests import ReleaseDigests
from vflens.types import Array, Exchange, Phase, Point, Released, sealed


class ReleaseGate:
    """The only maker of :class:`Released` besides the codec; one per party.

    Args:
        sender: the owner's name, as its peers know it.
        chain: its defences.
        folder: where the release log of predictions is kept, so that a restart does not draw anew, and the
            digests of other releases.
        steps: the rows of its training releases; None for a party that draws them itself.
    """

    def __init__(self, sender: str, chain: DefenseChain, folder: Path, steps: StepLog | None) -> None:
        self._sender = sender
        self._chain = chain
        self._journal = Journal(folder, chained=True, party=sender)
        self._digests = ReleaseDigests(folder)
        self._steps = steps
        self._cover: Callable[[Exchange], None] = lambda exchange: None
        self._keep = 1  # training releases of a point
        self._last: dict[Point, list[Released]] = {}  # the newest comes last
        self._disclosed: dict[tuple[Point, Exchange], Released] = {}
        self._room = (0, 0)
        self._rows: defaultdict[tuple[Point, int], RowLog] = defaultdict(lambda: RowLog(*self._room))
        for released in self._journal:
            self._log_of(released.point, released.exchange).add(
                released.rows, *_single(released.tensors), released.exchange
            )

    def keep_last(self, count: int) -> None:
        """Keep the last ``count`` training releases of a point: a stale gradient leaves a step later."""
        self._keep = count

    def limit(self, cover: Callable[[Exchange], None]) -> None:
        """Let ``cover`` refuse the exchanges whose releases exceed a budget; see :meth:`take`."""
        self._cover = cover

    def release_once(self) -> None:
        """Refuse to release other numbers in an exchange than an earlier process did; see
        :class:`vflens.storage.release_digests.ReleaseDigests`.
        """
        self._digests.once = True

    def make_room(self, positions: int, rows: int) -> None:
        """Expect ``rows`` prediction rows below ``positions``; see :class:`RowLog`."""
        self._room = positions, rows

    def take(self, exchange: Exchange, rows: Array) -> None:
        """Refuse a training step beyond a budget, then write its rows, before anything is computed of them;
        see :meth:`limit` and :meth:`vflens.member.step_log.StepLog.take`.
        """
        self._cover(exchange)
        self._write(exchange, rows)

    def _write(self, exchange: Exchange, rows: Array) -> None:
        if self._steps is not None:
            self._steps.take(exchange, rows)

    def rows_of(self, step: int) -> bytes | None:
        """The rows of training ``step``, int32; None where they are no longer known."""
        return None if self._steps is None else self._steps.rows(step)

    @property
    def epochs(self) -> int:
        """The number of epochs in which rows were released to train."""
        return 0 if self._steps is None else self._steps.epoch + 1

    def answered(self, point: Point, exchange: Exchange) -> Released | None:
        """The release of this training exchange if it was made before.

        Raises:
            StateError: the exchange lies before the last one: it was answered and is no longer kept.
        """
        kept = self._last.get(point)
        if not kept or exchange.step > kept[-1].exchange.step:
            return None
        if exchange == kept[-1].exchange:
            return kept[-1]
        raise StateError(
            f"step {exchange.step} of run {exchange.run!r} is over, {kept[-1].exchange.step} was the last: "
            "ask for the next"
        )

    def kept(self, point: Point, step: int) -> Released | None:
        """The release of training ``step`` if it is among those that are kept."""
        return next((r for r in self._last.get(point, ()) if r.exchange.step == step), None)

    def disclosed(self, point: Point, exchange: Exchange) -> Released | None:
        """The disclosure of this exchange if it was made before."""
        return self._disclosed.get((point, exchange))

    def release(
        self,
        point: Point,
        exchange: Exchange,
        rows: Array,
        tensors: Mapping[str, Array],
        mask: Callable[[Mapping[str, Array]], Mapping[str, Array]] | None = None,
    ) -> Released:
        """Defend, ``mask``, seal and keep ``tensors`` of ``rows`` (int32 positions); the log's answer where
        this was released before.

        Raises:
            PluginError: a defence broke its contract.
            StateError, ProtocolError, StorageError: ``exchange`` is a prediction; in training see
                :meth:`vflens.member.step_log.StepLog.take` and
                :meth:`vflens.storage.release_digests.ReleaseDigests.add`.
        """
        if exchange.phase is Phase.PREDICT:
            raise StateError("prediction rows are released with release_rows")
        if exchange.phase is Phase.DISCLOSE and (disclosed := self.disclosed(point, exchange)) is not None:
            return disclosed
        if exchange.phase is Phase.TRAIN:
            self._write(exchange, rows)  # first: what is not on disk has not been released
        left = self.defended(point, exchange, rows, tensors)
        if mask is not None and left is not None:
            left = mask(left)
        released = self._seal(point, exchange, rows, left)
        self._digests.add(released)  # first: what is not on disk has not been released
        if point is Point.SHARES:  # as large as a table, and computed again to the same bytes
            return released
        if exchange.phase is Phase.DISCLOSE:
            self._disclosed[point, exchange] = released
        else:
            self._last[point] = [*self._last.get(point, ()), released][-self._keep :]
        return released

    def release_rows(
        self, point: Point, exchange: Exchange, rows: Array, compute: Callable[[Array], Array]
    ) -> Released:
        """Release prediction ``rows`` (int32, distinct); ``compute`` gives the values (n, k) of those not yet
        released.

        Raises:
            ProtocolError: a row is named twice.
            StateError: see :meth:`limit`; or this exchange was used before with other rows; noise keyed by it
                would be shared.
        """
        self._cover(exchange)
        log, fresh = self._log_of(point, exchange), self.unreleased(point, exchange, rows)
        if len(fresh):
            tensors = self.defended(point, exchange, fresh, {str(point): compute(fresh)})
            new = self._seal(point, exchange, fresh, tensors)
            self._journal.append(new)  # first: what is not on disk has not been released
            log.add(new.rows, *_single(new.tensors), exchange)
            if len(fresh) == len(rows):
                return new
        return self._seal(point, exchange, rows, {str(point): log.values(rows)})

    def unreleased(self, point: Point, exchange: Exchange, rows: Array) -> Array:
        """Those of the prediction ``rows`` that were not released yet, in their order.

        Raises:
            ProtocolError, StateError: see :meth:`release_rows`.
        """
        if repeats(rows):
            raise ProtocolError(
                f"rows of {exchange.phase} step {exchange.step} are named twice: ask for each row once"
            )
        log = self._log_of(point, exchange)
        released = log.has(rows)
        fresh = rows[~released] if released.any() else rows
        if len(fresh) and exchange in log.exchanges:
            raise StateError(
                f"prediction step {exchange.step} was used before with other rows: number requests upwards"
            )
        return fresh

    def released_rows(self, point: Point, version: int) -> Array:
        """The rows of ``point`` released so far under model ``version``, in order of release (int32)."""
        log = self._rows.get((point, version))
        return log.order() if log else np.zeros(0, np.int32)

    def logged(self) -> Iterator[Released]:
        """The releases of prediction rows so far, before a restart too, in their order."""
        return iter(self._journal)

    def has(self, point: Point, exchange: Exchange) -> bool:
        """Whether prediction rows were released in this exchange."""
        return exchange in self._log_of(point, exchange).exchanges

    def next_request(self) -> int:
        """A number above those of all exchanges in which prediction rows were released."""
        used = (e.step for log in self._rows.values() for e in log.exchanges)
        return 1 + max(used, default=-1)

    def check_fired(self) -> None:
        """Refuse a finished run in which a configured defence never acted.

        Raises:
            DefenseError: naming it.
        """
        unfired = self._chain.unfired()
        if unfired:
            raise DefenseError(
                f"defence {unfired[0]!r} of {self._sender!r} never acted in this run: remove it, or "
                "configure what it acts on"
            )

    def state(self) -> dict[str, Array]:
        """The last training releases as arrays by point: "P exchange" (round, step), "P rows" int32 (n,), "P"
        (n, ·).
        """
        named: dict[str, Array] = {}
        for point, kept in self._last.items():
            for place, last in enumerate(kept):
                name = f"{point} {place}"
                exchange = np.array([last.exchange.round, last.exchange.step])
                named |= {f"{name} exchange": exchange, f"{name} rows": last.rows, name: last.tensor(point)}
        return named

    def load(self, state: Mapping[str, Array], run: str) -> None:
        """Take up :meth:`state`; what else ``state`` holds is passed over.

        Raises:
            ProtocolError: a release lacks its rows or values.
        """
        for point, place in product(Point, range(self._keep)):
            name = f"{point} {place}"
            if f"{name} exchange" in state:
                due: dict[str, Array] = {f"{name} exchange": np.zeros(2, np.int64)}
                due |= {f"{name} rows": np.zeros(0, np.int32), name: np.zeros((0, 0))}
                check_state(state, due)
                exchange = Exchange(run, Phase.TRAIN, *state[f"{name} exchange"].tolist())
                last = self._seal(point, exchange, state[f"{name} rows"], {point: state[name]})
                self._last.setdefault(point, []).append(last)

    @property
    def heads(self) -> dict[str, Head]:
        """The heads of what was released in predictions ("released") and before them ("digests")."""
        return {"released": self._journal.head, "digests": self._digests.head}

    def link(self) -> None:
        """See :meth:`vflens.storage.journal.Journal.link`."""
        self._journal.link()

    def check(self) -> None:
        """See :meth:`vflens.storage.journal.Journal.check`."""
        self._journal.check()
        if self._steps is not None:
            self._steps.check()

    def close(self) -> None:
        """Close the logs of what was released."""
        self._journal.close()
        self._digests.close()
        if self._steps is not None:
            self._steps.close()

    def _log_of(self, point: Point, exchange: Exchange) -> RowLog:
        return self._rows[point, exchange.round]

    def defended(
        self, point: Point, exchange: Exchange, rows: Array, tensors: Mapping[str, Array]
    ) -> Mapping[str, Array] | None:
        """What the defences leave of ``tensors`` of ``rows``; it neither leaves nor is kept."""
        hook = GATE_HOOKS.get(point)
        if hook is None or not self._chain.overrides(hook):
            return tensors
        if point in (Point.UPDATE, Point.MASKED_UPDATE):
            one = {name: tensor[None] for name, tensor in tensors.items()}
            changed = self._defended_rows(hook, exchange, np.zeros(1, np.int32), one)
            return {name: tensor[0] for name, tensor in changed.items()}
        if point is Point.GRADIENT and exchange.phase is Phase.DISCLOSE:
            return self._defended_rows(hook, exchange, rows, tensors)
        if point is Point.PARAMETERS:
            withheld_or_changed: Mapping[str, Array] | None = self._chain.fold(hook, tensors, exchange, rows)
            return withheld_or_changed
        return {**tensors, str(point): self._chain.fold(hook, tensors[str(point)], exchange, rows)}

    def _defended_rows(
        self, hook: str, exchange: Exchange, rows: Array, tensors: Mapping[str, Array]
    ) -> Mapping[str, Array]:
        """``tensors`` (n, …) after defences that see all numbers of a row as one: a norm is that of all."""
        flat = np.concatenate([tensor.reshape(len(rows), -1) for tensor in tensors.values()], axis=1)
        flat = self._chain.fold(hook, flat, exchange, rows)
        ends = np.cumsum([tensor[0].size for tensor in tensors.values()])[:-1]
        parts = zip(tensors.items(), np.split(flat, ends, axis=1), strict=True)
        return {name: part.reshape(tensor.shape) for (name, tensor), part in parts}

    def _seal(
        self, point: Point, exchange: Exchange, rows: Array, tensors: Mapping[str, Array] | None
    ) -> Released:
        contents = None if tensors is None else {name: sealed(t) for name, t in tensors.items()}
        return Released(self._sender, exchange, point, sealed(rows), tensors=contents)


def _single(tensors: Mapping[str, Array] | None) -> tuple[Array]:
    (value,) = (tensors or {}).values()
    return (value,)
