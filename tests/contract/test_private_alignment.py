"""Alignment by private set intersection: the rows of a plain intersection, and no lie believed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import edwards
import numpy as np
import pytest
from accidents import Around
from aligners import RUN, Aligner, aligned, collected
from hypothesis import given, settings
from hypothesis import strategies as st
from nonempty import nonempty

from vflens.errors import AlignmentError, ConfigError, ProtocolError, StateError
from vflens.protocol.link import Link
from vflens.protocol.vertical import alignment
from vflens.protocol.vertical.blinding import blinded_ids, blinding_key
from vflens.protocol.vertical.row_ids import Blind, Blinded, Identify, Identities, Salt
from vflens.types import AlignMode

NAMES = ("a", "b", "c", "d")
IDS = st.text("abc\x01é€", min_size=1, max_size=3)
FILES = st.lists(st.lists(IDS, min_size=1, max_size=8, unique=True), min_size=2, max_size=4)


def _parties(folder: Path, *files: list[str], **changes: Any) -> dict[str, Aligner]:
    return {name: Aligner(name, ids, folder, **changes) for name, ids in zip(NAMES, files, strict=False)}


@settings(max_examples=60)
@given(FILES, st.booleans(), st.integers(1, 9))
def test_rows_are_those_of_a_plain_intersection(files: list[list[str]], lab: bool, at_once: int) -> None:
    """In messages of any size, in both modes."""
    common = set(files[0]).intersection(*files[1:])
    for mode in ("psi", "hmac"):
        with TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
            patch.setitem(alignment.AT_ONCE, mode, at_once)
            parties = _parties(Path(home), *files, mode=mode, lab=lab)
            if len(common) < 2:  # nothing, or no row for one of the two parts
                with pytest.raises(AlignmentError):
                    aligned(parties)
                continue
            found, rows = aligned(parties)
            ids = {name: [files[k][row] for row in rows[name]] for k, name in enumerate(parties)}
            assert set(ids["a"]) == common
            assert len(ids["a"]) == len(common)
            assert all(others == ids["a"] for others in ids.values())
            assert sorted([*found.train, *found.predict]) == list(range(len(common)))


def test_parties_that_share_no_row_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        AlignmentError, match=r"^the parties share no row \(a: 2, b: 1 rows\): check id_column$"
    ):
        aligned(_parties(tmp_path, ["1", "2"], ["3"]))


@pytest.mark.parametrize("at_once", [1, 2, 9])
def test_a_row_named_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setitem(alignment.AT_ONCE, "psi", at_once)
    with pytest.raises(AlignmentError, match=r"^party 'b' names 1 row twice: make its id_column unique$"):
        aligned(_parties(tmp_path, ["1", "2"], ["1", "2", "1"]))


def test_the_files_splits_come_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(alignment.AT_ONCE, "psi", 2)
    ids = [str(i) for i in range(5)]
    parties = {
        "a": Aligner("a", ids, tmp_path, split=[0, 1, 0, 1, 0]),
        "b": Aligner("b", ids[::-1], tmp_path),
    }
    found, rows = aligned(parties)
    assert {ids[row] for row in rows["a"][found.predict]} == {"1", "3"}


class TestOneKeyARun:
    """The key is that of a folder's run: the same after a restart, another in any other run."""

    def test_a_restart_gives_the_same_bits(self, tmp_path: Path) -> None:
        parties = _parties(tmp_path, ["1", "2", "3"], ["2", "3", "4"], lab=False)
        before = collected(parties)
        for party in parties.values():
            party.start()
        again = collected(parties)
        assert before.salts == again.salts
        for name in nonempty(parties):
            assert before.sent[name].digests == again.sent[name].digests
            assert before.compared[name].digests == again.compared[name].digests

    @pytest.mark.parametrize("lab", [False, True])
    def test_two_runs_of_one_name_have_no_element_in_common(self, tmp_path: Path, lab: bool) -> None:
        """Outside lab mode; there one seed gives one result."""
        runs = [collected(_parties(tmp_path / run, ["1", "2"], ["1", "2"], lab=lab)) for run in ("x", "y")]
        seen = [
            {e for kind in (run.sent, run.compared) for found in kind.values() for e in _elements(found)}
            for run in runs
        ]
        assert len(seen[0]) == len(seen[1]) == 6
        assert (seen[0] == seen[1]) is lab
        assert bool(seen[0] & seen[1]) is lab

    def test_the_order_sent_says_nothing_of_the_file_s(self, tmp_path: Path) -> None:
        ids = [str(i) for i in range(40)]
        parties = _parties(tmp_path, ids, ids)
        lists = collected(parties)
        in_file = blinded_ids(
            parties["a"].table.ids, blinding_key(parties["a"].secret, lists.salts), lists.salts
        )
        assert sorted(_elements(lists.sent["a"])) == sorted(_elements(Identities(in_file, None)))
        assert lists.sent["a"].digests != in_file


def _elements(found: Identities) -> list[bytes]:
    return [found.digests[at : at + 32] for at in range(0, len(found.digests), 32)]


class TestRequests:
    """What a party blinds for a coordinator: each list once, in order, and no more than its limit."""

    @pytest.fixture
    def parties(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Aligner]:
        """They have aligned: five ids in messages of two."""
        monkeypatch.setitem(alignment.AT_ONCE, "psi", 2)
        ids = [str(i) for i in range(5)]
        made = _parties(tmp_path, ids, ids[1:], max_ids=6)
        collected(made)
        return made

    CASES: Mapping[str, tuple[Callable[[Blind], Blind], type[Exception], str]] = {
        "other ids": (
            lambda act: replace(act, elements=act.elements[32:] + act.elements[:32]),
            StateError,
            r"^blinded ids of 'b' from 0 on came with others before: a run has one alignment\. start all",
        ),
        "more ids": (
            lambda act: replace(act, ids=5),
            StateError,
            r"^party 'b' has 5 ids and had 4 before: a run has one alignment",
        ),
        "a message too many": (
            lambda act: replace(act, first=4),
            ProtocolError,
            r"^blinded ids of 'b' from 4 on, of 4: those from 4 on are due$",
        ),
        "from the middle of a message": (
            lambda act: replace(act, first=1),
            ProtocolError,
            r"^blinded ids of 'b' from 1 on, of 4",
        ),
        "before the first": (lambda act: replace(act, first=-2), ProtocolError, "from -2 on, of 4"),
        "a message of more": (
            lambda act: replace(act, elements=act.elements * 2),
            ProtocolError,
            r"^blinded ids of 'b' from 0 on have 128 bytes: expected 32 of each of 2$",
        ),
        "a message of less": (
            lambda act: replace(act, elements=act.elements[:-1]),
            ProtocolError,
            "have 63 bytes: expected 32 of each of 2",
        ),
        "another list of no more ids than the limit leaves": (
            lambda act: replace(act, party="x", ids=3),
            StateError,
            r"^party 'x' has 3 ids: with them the other parties have more than limits\.max_ids = 6 at 'a', "
            "raise it if these are no guesses$",
        ),
        "no ids": (lambda act: replace(act, party="x", ids=0), ProtocolError, "from 0 on, of 0"),
        "fewer than no ids": (lambda act: replace(act, party="x", ids=-5), ProtocolError, "of -5"),
        "its own": (
            lambda act: replace(act, party="a"),
            ProtocolError,
            r"^party 'a' blinds no ids of 'a': those of other data parties are due$",
        ),
        "no name": (
            lambda act: replace(act, party="x" * 99),
            ProtocolError,
            "^party 'a' blinds no ids of 'xxx",
        ),
        "other salts": (
            lambda act: replace(act, salts=act.salts[::-1]),
            ProtocolError,
            r"^the salts of the alignment lack that of 'a'",
        ),
        "its own salt among others": (
            lambda act: replace(act, salts=act.salts + bytes(32)),
            StateError,
            r"^party 'a' began to align with other salts: a party has another table or folder since, and "
            r"a run has one alignment\. start all parties anew, each without --resume$",
        ),
        "salts with a tail": (
            lambda act: replace(act, salts=act.salts + b"1"),
            ProtocolError,
            "salts of 65 bytes",
        ),
    }

    @pytest.mark.parametrize("restarted", [False, True])
    @pytest.mark.parametrize("case", CASES)
    def test_what_is_not_due_is_refused(
        self, parties: dict[str, Aligner], case: str, restarted: bool
    ) -> None:
        honest = next(act for act in parties["a"].seen if isinstance(act, Blind))
        if restarted:
            parties["a"].start()
        lie, kind, sentence = self.CASES[case]
        with pytest.raises(kind, match=sentence) as caught:
            parties["a"].submit(lie(honest))
        assert type(caught.value) is kind
        kept = parties["a"].submit(honest).result()  # repeated as it was: the same bits
        assert len(kept.elements) == 64

    def test_a_list_in_a_name_of_nobody_is_found_when_the_run_is_prepared(self, tmp_path: Path) -> None:
        parties = _parties(tmp_path, ["1", "2"], ["1", "2"])
        collected(parties)
        honest = next(act for act in parties["a"].seen if isinstance(act, Blind))
        parties["a"].submit(replace(honest, party="guesses"))
        with pytest.raises(
            ProtocolError,
            match=r"^'a' blinded the ids of b, guesses, and the other data parties of the run are b: align",
        ):
            aligned(parties)

    @pytest.mark.parametrize("first", [-1, 2, 3, 2**62])
    def test_ids_that_a_party_has_not_are_refused(self, tmp_path: Path, first: int) -> None:
        party = Aligner("a", ["1", "2"], tmp_path)
        salts = party.submit(Salt(RUN)).result().salt
        with pytest.raises(ProtocolError, match=rf"^row ids from {first} on: party 'a' has 2 rows$"):
            party.submit(Identify(RUN, salts, first))

    def test_a_party_that_aligns_by_hmac_blinds_nothing(self, tmp_path: Path) -> None:
        party = Aligner("a", ["1"], tmp_path, mode="hmac")
        with pytest.raises(
            ConfigError, match=r"^party 'a' aligns by hmac and was asked to blind ids: set align"
        ):
            party.submit(Blind(RUN, bytes(32), "b", 0, ids=1, elements=bytes(32)))

    def test_each_list_is_logged_once(self, parties: dict[str, Aligner]) -> None:
        collected(parties)
        log = (parties["a"].config.out / "events.jsonl").read_text(encoding="utf-8")
        assert log.count('"of": "b", "ids": 4') == log.count("blinds ids") == 1

    def test_a_damaged_note_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "blinded.json").write_text('{"salts": 3}', encoding="utf-8")
        with pytest.raises(
            Exception, match=r"blinded\.json does not say what was blinded \(salts: give a text"
        ):
            Aligner("a", ["1"], tmp_path)


class Lying(Around):
    """Tells ``lie`` of each reply."""

    def __init__(self, inner: Link, lie: Callable[[Any], Any]) -> None:
        super().__init__(inner)
        self._lie = lie

    def submit(self, act: Any) -> Any:
        reply = super().submit(act)
        changed = self._lie(reply.result())
        return type(reply)(changed)


def _blinded(change: Callable[[bytes], bytes], reply: Any) -> Any:
    return Blinded(change(reply.elements)) if isinstance(reply, Blinded) else reply


def _with_small_order(u: bytes) -> bytes:
    element = edwards.of_x25519(u)
    assert element is not None
    return edwards.x25519(edwards.added(element, edwards.small()[1]))


#: How an element is sent as another number, of which every key makes the same one.
SAME: Mapping[str, Callable[[bytes], bytes]] = {
    "with the bit that no element has": lambda u: u[:31] + bytes([u[31] | 0x80]),
    "with one of small order added": _with_small_order,
}


class TestReplies:
    """What the coordinator takes of a party."""

    CASES: Mapping[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
        "a byte less": (
            partial(_blinded, lambda e: e[:-1]),
            ProtocolError,
            r"^party 'b' sent 63 bytes of digests: 32 of each of 2 ids are due$",
        ),
        "an element more": (
            partial(_blinded, lambda e: e + e[:32]),
            ProtocolError,
            "^party 'b' sent 96 bytes",
        ),
        "one element for two ids": (
            partial(_blinded, lambda e: e[:32] * 2),
            ProtocolError,
            r"^'b' gave one blinded id to two different ids of 'a'",
        ),
        "another mode": (
            lambda r: replace(r, mode="hmac") if hasattr(r, "mode") else r,
            ConfigError,
            r"^the data parties align in different ways \('b' by hmac, 'c' by psi\): set align.mode alike",
        ),
        "too many ids": (
            lambda r: replace(r, ids=999) if hasattr(r, "ids") else r,
            ConfigError,
            r"^the data parties have 1003 ids, more than limits\.max_ids = 1000 at the coordinator:",
        ),
        "fewer ids than it says": (
            lambda r: replace(r, ids=3) if hasattr(r, "ids") else r,
            ProtocolError,
            r"^party 'b' sent 64 bytes of digests: 32 of each of 3 ids are due$",
        ),
        "a split of other rows": (
            lambda r: replace(r, split=np.zeros(1, np.uint8)) if isinstance(r, Identities) else r,
            ProtocolError,
            r"^party 'b' sent a split that is not one 0 or 1 for each of 2 rows$",
        ),
        "an empty split": (
            lambda r: replace(r, split=np.zeros(0, np.uint8)) if isinstance(r, Identities) else r,
            ProtocolError,
            "not one 0 or 1 for each of 2 rows",
        ),
    }

    @pytest.mark.parametrize("case", CASES)
    def test_a_lie_is_refused(self, tmp_path: Path, case: str) -> None:
        lie, kind, sentence = self.CASES[case]
        parties: dict[str, Link] = {**_parties(tmp_path, ["1", "2"], ["2", "1"], ["1", "2"])}
        parties["b"] = Lying(parties["b"], lie)
        with pytest.raises(kind, match=sentence):
            collected(parties)

    @pytest.mark.parametrize("same", SAME)
    @pytest.mark.parametrize("by", ["a", "b"])
    def test_who_sends_one_element_as_two_ids_is_named(self, tmp_path: Path, same: str, by: str) -> None:
        """Party c blinds both to one, with any key: it is not to blame, whether a or b sends them to it."""

        def lie(reply: Any) -> Any:
            name = {"a": "digests", "b": "elements"}[by]
            elements = getattr(reply, name, None)
            return replace(reply, **{name: elements[:32] + SAME[same](elements[:32])}) if elements else reply

        parties: dict[str, Link] = {**_parties(tmp_path, ["1", "2"], ["2", "1"], ["1", "2"])}
        parties[by] = Lying(parties[by], lie)
        with pytest.raises(ProtocolError, match=rf"^'{by}' sent one element for two different ids of 'a': "):
            collected(parties)

    def test_an_element_of_small_order_is_refused_by_who_gets_it_next(self, tmp_path: Path) -> None:
        parties: dict[str, Link] = {**_parties(tmp_path, ["1", "2"], ["2", "1"], ["1", "2"])}
        parties["b"] = Lying(parties["b"], partial(_blinded, lambda e: e[:32] + bytes(31) + b"\x80"))
        with pytest.raises(ProtocolError, match=r"^blinded id 1 of 'a' is an element of small order"):
            collected(parties)

    def test_a_split_of_half_the_messages_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(alignment.AT_ONCE, "psi", 1)
        replies = iter([True, False])

        def lie(reply: Any) -> Any:
            some = isinstance(reply, Identities) and next(replies)
            return replace(reply, split=np.zeros(1, np.uint8)) if some else reply

        parties: dict[str, Link] = {**_parties(tmp_path, ["1", "2"], ["2", "1"])}
        parties["b"] = Lying(parties["b"], lie)
        with pytest.raises(ProtocolError, match=r"^party 'b' sent a split of some of its rows: all or none"):
            collected(parties)


def test_each_party_blinds_each_list_of_the_others_once(tmp_path: Path) -> None:
    parties = _parties(tmp_path, *[["1", "2"]] * 4)
    collected(parties)
    for name, party in nonempty(parties.items()):
        lists = [act.party for act in party.seen if isinstance(act, Blind)]
        assert sorted(lists) == sorted({*parties} - {name})


@pytest.mark.parametrize("mode", ["psi", "hmac"])
def test_messages_are_of_bounded_size(mode: AlignMode) -> None:
    assert alignment.AT_ONCE[mode] * alignment.DIGEST_BYTES <= 4 << 20
