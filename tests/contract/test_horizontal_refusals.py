"""A horizontal federation: what clients and their server refuse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from horizontal import (
    CLASSES,
    COLUMNS,
    clients_of,
    deal,
    federation,
    server_of,
)
from laboratory import close
from oneprocess import LocalFederation
from twoclients import MLP, NO_ROWS, TABLES, local

from vflens.clients.horizontal.own_file import client_info
from vflens.config import ClientConfig, load_party
from vflens.config.compatibility import build_defenses
from vflens.errors import AccessError, ConfigError, ProtocolError, StateError, VflensError
from vflens.protocol.acts import Begin, Finished, Prepare, Step
from vflens.protocol.agreement import parties_from_dicts, parties_to_dicts
from vflens.protocol.horizontal.agreement import check_alike
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.protocol.vertical.row_ids import Identify
from vflens.tables.description import PartyFile
from vflens.tables.files import read_party_table
from vflens.types import ColumnInfo, Exchange, PartyInfo, Phase, Point, Role, sealed
from vflens.wire.agreements.party_info import decode_party, encode_party

_FIXTURES = (local,)  # used by name
STRANGE: dict[str, tuple[Any, str]] = {
    "of another party": ({"sender": "b"}, "parameters of 'b' came instead of parameters of 'server'"),
    "an update": ({"point": Point.UPDATE}, "update of 'server' came instead of parameters"),
    "another name": ({"tensors": {"strange": np.zeros(3)}}, "carries no tensor"),
    "one too many": ({"more": np.zeros(3, "<f4")}, "carries the tensor 'more': the model has none"),
    "other shapes": ({"reshaped": True}, "has shape"),
    "no numbers": ({"broken": True}, "holds NaN, infinite or huge numbers"),
}


@pytest.mark.parametrize("what", STRANGE)
def test_a_client_refuses_other_parameters(local: LocalFederation, what: str) -> None:
    changes, sentence = dict(STRANGE[what][0]), STRANGE[what][1]
    server, exchange = server_of(local), Exchange("tiny/run", Phase.TRAIN, 0, 0)
    tensors = {name: value.copy() for name, value in server.parameters.items()}
    if "more" in changes:
        tensors["more"] = changes.pop("more")
    first = next(iter(tensors))
    if changes.pop("reshaped", False):
        tensors[first] = tensors[first][:1]
    if changes.pop("broken", False):
        tensors[first][0] = np.inf
    sent = server.gate.release(Point.PARAMETERS, exchange, NO_ROWS, tensors)
    if "tensors" in changes:
        changes["tensors"] = {name: sealed(tensor) for name, tensor in changes["tensors"].items()}
    sent = replace(sent, **changes)
    with pytest.raises(ProtocolError, match=sentence):
        server.links["a"].call(Step(exchange, NO_ROWS, sent))
    assert clients_of(local)["a"].recovery.learned == -1


def test_rounds_come_in_order_and_a_repeated_one_is_answered_from_the_log(local: LocalFederation) -> None:
    server, client = server_of(local), clients_of(local)["a"]

    def asked(number: int) -> Any:
        exchange = Exchange("tiny/run", Phase.TRAIN, number, number)
        sent = server.gate.release(Point.PARAMETERS, exchange, NO_ROWS, server.parameters)
        return server.links["a"].call(Step(exchange, NO_ROWS, sent)).released

    with pytest.raises(StateError, match=r"step 1 came before step 0"):
        asked(1)
    first = asked(0)
    assert asked(0) is first
    asked(1)
    with pytest.raises(StateError, match=r"step 0 of run 'tiny/run' is over"):
        asked(0)
    with pytest.raises(StateError, match=r"round 4 of 3: training is over"):
        asked(4)
    assert client.recovery.learned == 1
    client.begin(Begin("tiny/run", 1))
    with pytest.raises(StateError, match=r"after the end of training"):
        asked(2)


def test_only_the_server_asks_and_only_in_its_own_name(local: LocalFederation) -> None:
    server, client = server_of(local), clients_of(local)["a"]
    with pytest.raises(AccessError, match=r"nobody may in this run$"):
        server.links["a"].call(Identify("tiny/run", b"", 0))
    with pytest.raises(AccessError, match=r"in the name of 'b' came from 'a'"):
        client.links["server"].call(Finished("tiny/run", "b"))
    with pytest.raises(AccessError, match=r"only the server may$"):
        client.links["server"].call(Prepare(server.prepared, NO_ROWS))


def test_settings_do_not_mix(local: LocalFederation) -> None:
    members = (
        PartyInfo("p", Role.PASSIVE, columns=COLUMNS),
        PartyInfo("q", Role.ACTIVE, columns=(), n_classes=2),
    )
    prepared = server_of(local).prepared
    vertical = VerticalAgreement(
        run="tiny/run",
        parties=members,
        rows=0,
        train=NO_ROWS,
        predict=NO_ROWS,
        training=prepared.training,
        lab=True,
    )
    with pytest.raises(ProtocolError, match=r"run 'tiny/run' is vertical: 'a' is a client"):
        server_of(local).links["a"].call(Prepare(vertical, NO_ROWS))
    other = replace(prepared, lab=False)
    with pytest.raises(StateError, match=r"client 'a' is in run 'tiny/run' with other settings"):
        server_of(local).links["a"].call(Prepare(other, NO_ROWS))


def client(name: str = "a", **changes: Any) -> PartyInfo:
    return replace(
        PartyInfo(
            name, Role.CLIENT, columns=COLUMNS, n_classes=3, classes=CLASSES, train_rows=5, predict_rows=2
        ),
        **changes,
    )


UNLIKE = [
    ({"columns": (*COLUMNS[:3], ColumnInfo("other", -4.0, 4.0))}, "'c3' is a column of one alone"),
    ({"columns": COLUMNS[::-1]}, "their order differs, give both files the same"),
    (
        {"columns": (*COLUMNS[:3], ColumnInfo("c3", -4.0, 5.0))},
        "column 'c3' is described otherwise at 'a' and",
    ),
    ({"classes": ("no", "yes", "perhaps")}, "declare the same data.classes at every client"),
    ({"train_rows": 0}, "client 'b' has 0 training and 2 prediction rows"),
]


@pytest.mark.parametrize(("changes", "sentence"), UNLIKE)
def test_clients_that_are_not_alike_are_refused(changes: Any, sentence: str) -> None:
    check_alike([client(), client("b")])
    with pytest.raises(ConfigError, match=sentence):
        check_alike([client(), client("b", **changes)])


def test_a_column_without_bounds_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"column 'x' of 'a' has no declared bounds"):
        check_alike([client(columns=(ColumnInfo("x"),))])


REFUSED: list[tuple[str, Any, str]] = [
    ("server", {"training": {"epochs": 3}}, "training.epochs has no meaning in rounds"),
    (
        "server",
        {"horizontal": {"local_epochs": 2, "local_steps": 3}},
        "local_steps = 3 and local_epochs = 2: a round has one length",
    ),
    ("server", {"transcript": {"every": 2}}, "transcript.every = 2 of 3 rounds leaves out the last"),
    ("a", {"defenses": [{"name": "round_scores"}]}, "defence 'round_scores' at client 'a' would never act"),
]


@pytest.mark.parametrize(("who", "changes", "sentence"), REFUSED)
def test_settings_without_effect_are_refused(tmp_path: Path, who: str, changes: Any, sentence: str) -> None:
    files = deal(tmp_path, TABLES, **{**MLP, **changes})
    with pytest.raises(ConfigError, match=sentence):
        build_defenses(load_party(files[who]))


def test_a_longer_training_than_a_client_allows_is_refused(tmp_path: Path) -> None:
    local = federation(deal(tmp_path, TABLES, **{**MLP, "limits": {"epochs": 5}}))
    with pytest.raises(
        VflensError, match=r"local epochs of all rounds: 6 in run .*limits.epochs at 'a' is 5"
    ):
        local.leader.lead()
    close(local)


def test_clients_whose_codes_stand_for_other_texts_are_refused(tmp_path: Path) -> None:
    """Code 1 would be mid here and high there; the same texts in the same order are fine."""
    infos = []
    for name, texts, declared in (
        ("a", ("low", "mid"), None),
        ("b", ("low", "high"), None),
        ("c", ("mid", "low"), None),
        ("d", ("low", "low"), ("low", "mid")),
        ("e", ("low", "mid"), ("mid", "low")),
    ):
        rows = "".join(f"{i},{i % 3},{texts[i % 2]},{i % 2}\n" for i in range(8))
        (tmp_path / f"{name}.csv").write_text(f"id,n,x,y\n{rows}")
        spec = PartyFile(
            file=tmp_path / f"{name}.csv",
            label_column="y",
            encode={"x": "ordinal"},
            categories={} if declared is None else {"x": declared},
            bounds={"n": (0, 2)},
        )
        config = load_party(deal(tmp_path / name, {name: TABLES["a"]}, **MLP)[name])
        assert isinstance(config, ClientConfig)
        infos.append(client_info(config, read_party_table(spec)))
    a, b, c, d, e = infos
    check_alike([a, c])
    check_alike([a, d])
    for one, other in ((a, b), (a, e), (d, e)):
        with pytest.raises(ConfigError, match=r"column 'x' has other categories at .*the same categories\.x"):
            check_alike([one, other])
    assert a.categories[0] == ""
    assert decode_party(encode_party(a)) == a
    assert parties_from_dicts(parties_to_dicts([a])) == (a,)
    assert "categories" not in parties_to_dicts([client()])[0]


@pytest.mark.parametrize("digests", [("0" * 16,), ("", "x" * 16, "", ""), ("", "0" * 15, "", "")])
def test_digests_that_are_none_are_refused(digests: tuple[str, ...]) -> None:
    with pytest.raises(ProtocolError, match=r"digests? of categories: 16 hexadecimal digits or none are due"):
        decode_party(encode_party(client(categories=digests)))
