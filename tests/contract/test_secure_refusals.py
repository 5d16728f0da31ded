"""Secure aggregation: what server and clients refuse of each other, and what an audit of two then finds."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from accidents import Around
from horizontal import clients_of, deal, federation, server_of
from laboratory import close
from summing import NO_ROWS, SECURE, TABLES, local, masked, numbers

from vflens.config import load_party
from vflens.errors import ConfigError, ProtocolError, UnavailableError, VflensError
from vflens.experiments.verify_log.verify import verify_logs
from vflens.protocol.acts import Act, Describe, Prepare, Step, StepReply
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.protocol.horizontal.secure_sum import Masking
from vflens.protocol.link import Link
from vflens.recorded.horizontal.parameters import averaged
from vflens.types import Array, Point, Released, sealed

_FIXTURES = (local,)  # used by name


def test_an_update_that_no_mask_hides_is_refused(tmp_path: Path) -> None:
    huge = {"optimizer": "sgd", "learning_rate": 1e12, "batch_size": 8, "l2": 0.0}
    local = federation(deal(tmp_path, TABLES, **{**SECURE, "training": huge}))
    with pytest.raises(
        VflensError, match=r"update of 'a' in round 0 holds NaN, infinite or huge numbers, which"
    ):
        local.leader.lead()
    close(local)


def test_a_sum_that_lacks_an_update_is_refused(tmp_path: Path) -> None:
    """A folder from which a message was taken: what remains are masks."""
    local = federation(deal(tmp_path, TABLES, **SECURE))
    local.run()
    server = server_of(local)
    some = [r for r in masked(local) if not r.exchange.round and r.sender != "b"]
    with pytest.raises(UnavailableError, match=r"round 0: no masked update came from 'b'"):
        averaged(server.prepared, server.parameters, some)


class Swaps(Around):
    """A server that gives this client a key of its own for "b"."""

    def __init__(self, inner: Link, key: str) -> None:
        super().__init__(inner)
        self._key = key

    def submit(self, act: Act[Any]) -> Any:
        if isinstance(act, Prepare) and isinstance(act.federation, HorizontalAgreement):
            parties = [replace(p, mask_key=self._key) if p.name == "b" else p for p in act.federation.parties]
            act = replace(act, federation=replace(act.federation, parties=tuple(parties)))
        return super().submit(act)


@pytest.mark.parametrize("given", ["ab", "abc", "ac"])
def test_the_audit_of_two_clients_finds_a_server_that_swaps_keys(tmp_path: Path, given: str) -> None:
    """The owner of the key must be among them."""
    local = federation(deal(tmp_path, TABLES, **SECURE))
    server = server_of(local)
    other = Masking(b"the server's", "tiny/run", "b").public.hex()
    server.links["a"] = Swaps(server.links["a"], other)
    server.prepare()
    close(local)
    (audited,) = verify_logs([tmp_path / name for name in given])
    problems = [(finding.party, finding.problem) for finding in audited.found.findings]
    swapped = "its key of masks of 'b' is not that of 'b': who put it there could take masks off"
    assert problems == ([("a", swapped)] if "b" in given else [])


def test_the_audit_finds_a_server_that_tells_clients_other_numbers_of_rows(tmp_path: Path) -> None:
    local = federation(deal(tmp_path, TABLES, **SECURE))
    server_of(local).prepare()
    close(local)
    file = tmp_path / "b" / "federation.json"
    facts = json.loads(file.read_text())
    (heavy,) = (party for party in facts["parties"] if party["name"] == "a")
    heavy["train_rows"] = 10**13
    file.write_text(json.dumps(facts))
    (audited,) = verify_logs([tmp_path / name for name in "abc"])
    assert [(f.party, f.problem) for f in audited.found.findings] == [
        (
            "b",
            "its number of training rows of 'a' is not that of 'a': who put it there could change the "
            "weights of updates",
        )
    ]


WRONG: dict[str, tuple[Any, str]] = {
    "plain numbers": (
        lambda r: replace(r, point=Point.UPDATE),
        "update of 'a' came instead of masked_update",
    ),
    "another modulus": (lambda r: changed(r, numbers(r).astype("<i4")), r"has shape \(15,\) int32: expected"),
    "real numbers": (lambda r: changed(r, numbers(r).astype("<f8")), r"has shape \(15,\) float64: expected"),
    "too few": (
        lambda r: changed(r, numbers(r)[:-1].view("<i8")),
        r"has shape \(14,\) int64: expected \(15,\)",
    ),
    "by name": (lambda r: replace(r, tensors={"weight": r.tensor("masked")}), "carries no tensor 'masked'"),
}


def changed(released: Released, values: Array) -> Released:
    return replace(released, tensors={"masked": sealed(values)})


@pytest.mark.parametrize("what", WRONG)
def test_a_server_refuses_another_answer_than_a_masked_update(tmp_path: Path, what: str) -> None:
    change, sentence = WRONG[what]
    local = federation(deal(tmp_path, TABLES, **SECURE))
    client = clients_of(local)["a"]
    answer = client.step

    def step(act: Step) -> StepReply:
        reply = answer(act)
        assert reply.released is not None
        return StepReply(change(reply.released))

    client.__dict__["_answers"] = {**client.handlers(), Step: step}
    with pytest.raises(ProtocolError, match=sentence):
        local.leader.lead()
    assert not masked(local)
    close(local)


@pytest.mark.parametrize("clients", [False, True])
def test_server_and_clients_must_agree_on_masks(tmp_path: Path, clients: bool) -> None:
    horizontal = {"rounds": 3, "secure_aggregation": not clients}
    settings = {**SECURE, "secure_aggregation": clients, "horizontal": horizontal}
    local = federation(deal(tmp_path, TABLES, **settings))
    text = str(clients).lower(), str(not clients).lower()
    with pytest.raises(
        ConfigError, match=rf"secure_aggregation = {text[0]} at 'a' and {text[1]} at the server"
    ):
        local.leader.lead()
    close(local)


def test_a_client_refuses_to_send_in_the_clear_whatever_the_server_sends(tmp_path: Path) -> None:
    local = federation(deal(tmp_path, TABLES, **SECURE))
    server = server_of(local)
    infos = tuple(server.links[name].call(Describe("tiny/run")) for name in TABLES)
    config = server.config
    plain = config.horizontal.model_copy(update={"secure_aggregation": False})
    agreed = partial(
        HorizontalAgreement,
        run="tiny/run",
        training=config.training,
        lab=config.lab,
        model=config.model,
        horizontal=plain,
    )
    with pytest.raises(ConfigError, match=r"secure_aggregation = true at 'a' and false at the server"):
        server.links["a"].call(Prepare(agreed(parties=infos), NO_ROWS))
    stripped = tuple(replace(info, mask_key="") for info in infos)
    with pytest.raises(ProtocolError, match=r"does not know client 'a' with its columns"):
        server.links["a"].call(Prepare(agreed(parties=stripped), NO_ROWS))
    close(local)


@pytest.mark.parametrize(
    ("tables", "more"),
    [({n: TABLES[n] for n in "ab"}, {}), (TABLES, {"participants": 2})],
    ids=["two", "drawn"],
)
def test_a_sum_of_two_is_refused(tmp_path: Path, tables: Any, more: Any) -> None:
    horizontal = {**SECURE["horizontal"], **more}
    files = deal(tmp_path, tables, **{**SECURE, "horizontal": horizontal})
    sentence = (
        r"horizontal.secure_aggregation of 2 clients in a round: from the sum one would know the other's"
    )
    with pytest.raises(ConfigError, match=sentence):
        load_party(files["server"])
