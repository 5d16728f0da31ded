"""The coordinator's part before rows are aligned: it collects the digests of row ids, in modest messages.

With mode "psi" it also sends each list round the data parties until all have blinded it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from vflens.errors import ConfigError, ProtocolError
from vflens.protocol.link import Links
from vflens.protocol.vertical.alignment import (
    AT_ONCE,
    DIGEST_BYTES,
    check_distinct,
    check_salt,
    repeated_digests,
)
from vflens.protocol.vertical.blinding import blinded_again
from vflens.protocol.vertical.row_ids import Blind, Identify, Identities, Salt, Salted
from vflens.types import AlignMode, Progress
from vflens.words import counted

_ANY_KEY = bytes(DIGEST_BYTES)  # no secret: it tells elements that every key makes one


@dataclass(frozen=True, eq=False)
class Lists:
    """The digests of every data party by name as it ``sent`` them, and those that are ``compared``: with mode
    "psi" all parties have blinded them.
    """

    mode: AlignMode
    salts: bytes
    sent: Mapping[str, Identities]
    compared: Mapping[str, Identities]


def collect(links: Links, run: str, most: int, report: Progress) -> Lists:
    """The lists of all data parties in ``run``, ``most`` ids at most; ``report`` hears how many are blinded.

    Raises:
        ConfigError: parties align in different ways, or have more ids.
        ProtocolError, AlignmentError: a reply that cannot be.
    """
    answers = {name: links[name].call(Salt(run)) for name in sorted(links)}
    mode, ids = _agreed_mode(answers), _sizes(answers, most)
    salts = b"".join(check_salt(name, salted.salt) for name, salted in answers.items())
    asking = _Asking(links=links, run=run, salts=salts, ids=ids, mode=mode, report=report)
    sent = asking.identities()
    return Lists(mode, salts, sent, asking.blinded(sent) if mode == "psi" else sent)


def _agreed_mode(answers: Mapping[str, Salted]) -> AlignMode:
    modes = {salted.mode: name for name, salted in answers.items()}
    if len(modes) > 1:
        found = ", ".join(f"{name!r} by {mode}" for mode, name in sorted(modes.items()))
        raise ConfigError(
            f"the data parties align in different ways ({found}): set align.mode alike at all of them"
        )
    (mode,) = modes
    return mode


def _sizes(answers: Mapping[str, Salted], most: int) -> dict[str, int]:
    """How many ids each party has."""
    if (total := sum(salted.ids for salted in answers.values())) > most:
        raise ConfigError(
            f"the data parties have {counted(total, 'id')}, more than limits.max_ids = {most} at the "
            "coordinator: raise it"
        )
    return {name: salted.ids for name, salted in answers.items()}


@dataclass(frozen=True, eq=False)
class _Asking:
    """Questions about the ``ids`` that each party has, in messages; all are asked side by side."""

    links: Links
    run: str
    salts: bytes
    ids: Mapping[str, int]
    mode: AlignMode
    report: Progress

    @property
    def at_once(self) -> int:
        """Ids of one message."""
        return AT_ONCE[self.mode]

    def _messages(self) -> Iterator[tuple[int, dict[str, int]]]:
        """The first id of each message, and how many of each party's ids it is due to have."""
        for first in range(0, max(self.ids.values()), self.at_once):
            yield first, {p: min(self.at_once, n - first) for p, n in self.ids.items() if n > first}

    def _reached(self, hop: int, first: int) -> None:
        if self.mode == "hmac":  # at once
            return
        whole = sum(self.ids.values())
        reached = sum(min(first + self.at_once, n) for n in self.ids.values())
        self.report("blinding ids", hop * whole + reached, len(self.ids) * whole)

    def identities(self) -> dict[str, Identities]:
        """What each party says of its own ids."""
        parts: dict[str, list[Identities]] = {party: [] for party in self.ids}
        for first, due in self._messages():
            replies = {p: self.links[p].submit(Identify(self.run, self.salts, first)) for p in due}
            for party, reply in replies.items():
                parts[party].append(_checked(party, reply.result(), due[party]))
            self._reached(0, first)
        return {party: _joined(party, parts[party]) for party in self.ids}

    def blinded(self, sent: Mapping[str, Identities]) -> dict[str, Identities]:
        """The lists ``sent`` after they have gone round, in their order."""
        for party, found in sent.items():
            check_distinct(party, repeated_digests(found.digests))
        parties, lists = list(sent), {party: found.digests for party, found in sent.items()}
        for hop in range(1, len(parties)):
            to = dict(zip(parties, parties[hop:] + parties[:hop], strict=True))
            givers = dict(zip(parties, parties[hop - 1 :] + parties[: hop - 1], strict=True))
            passed = self._passed_on(lists, to, hop)
            for party in parties:
                if repeated_digests(passed[party]):
                    raise _two_as_one(party, lists[party], by=givers[party], then=to[party])
            lists = passed
        return {party: Identities(lists[party], sent[party].split) for party in parties}

    def _passed_on(self, lists: Mapping[str, bytes], to: Mapping[str, str], hop: int) -> dict[str, bytes]:
        """The list of each party, blinded by the party that it goes ``to``."""
        parts: dict[str, list[bytes]] = {party: [] for party in lists}
        for first, due in self._messages():
            at, end = first * DIGEST_BYTES, (first + self.at_once) * DIGEST_BYTES
            replies = {
                p: self.links[to[p]].submit(
                    Blind(self.run, self.salts, p, first, ids=self.ids[p], elements=lists[p][at:end])
                )
                for p in due
            }
            for party, reply in replies.items():
                elements = reply.result().elements
                _check_length(to[party], elements, due[party])
                parts[party].append(elements)
            self._reached(hop, first)
        return {party: b"".join(parts[party]) for party in lists}


def _two_as_one(party: str, given: bytes, *, by: str, then: str) -> ProtocolError:
    """Two ids of ``party`` became one where ``then`` blinded the list ``given`` by another one.

    Every key makes one of two numbers that differ in the bit that no element has, or by an element of small
    order: then ``by`` sent one element as two.
    """
    as_two = repeated_digests(blinded_again(given, _ANY_KEY, by))
    blamed = f"{by!r} sent one element for" if as_two else f"{then!r} gave one blinded id to"
    return ProtocolError(f"{blamed} two different ids of {party!r}: use the same version everywhere")


def _checked(party: str, reply: Identities, due: int) -> Identities:
    _check_length(party, reply.digests, due)
    if reply.split is not None and (len(reply.split) != due or reply.split.max() > 1):
        raise ProtocolError(
            f"party {party!r} sent a split that is not one 0 or 1 for each of {counted(due, 'row')}"
        )
    return reply


def _check_length(party: str, digests: bytes, due: int) -> None:
    if len(digests) != due * DIGEST_BYTES:
        raise ProtocolError(
            f"party {party!r} sent {counted(len(digests), 'byte')} of digests: {DIGEST_BYTES} of each of "
            f"{counted(due, 'id')} are due"
        )


def _joined(party: str, parts: list[Identities]) -> Identities:
    """All of a list, from its messages."""
    splits = [part.split for part in parts if part.split is not None]
    if len(splits) not in (0, len(parts)):
        raise ProtocolError(f"party {party!r} sent a split of some of its rows: all or none have one")
    digests = b"".join(part.digests for part in parts)
    return Identities(digests, np.concatenate(splits) if splits else None)
