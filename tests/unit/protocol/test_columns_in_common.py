"""The work of a party does not grow with the columns of all clients, which are the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vflens.experiments.results.files import FederationFile
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.settings import Horizontal, Training
from vflens.protocol import agreement
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.protos.vfl_pb2 import PartyInfo as PartyMessage
from vflens.tables.cells import TableFile
from vflens.types import ColumnInfo, PartyInfo, Role, Signature
from vflens.wire.agreements import party_info
from vflens.wire.agreements.federation import decode_federation, encode_federation

COLUMNS = tuple(ColumnInfo(f"pixel_{i}", 0.0, 16.0, pixel=(0, i)) for i in range(8))
CLIENTS = 30


def federation() -> HorizontalAgreement:
    parties = (
        PartyInfo(
            f'client-{i:02} "columns": []',
            Role.CLIENT,
            columns=tuple(ColumnInfo(c.name, c.low, c.high, pixel=c.pixel) for c in COLUMNS),
            n_classes=2,
            classes=('"columns": []', "b"),
            train_rows=i + 1,
            predict_rows=3,
            signature=Signature("a certificate", f"{i:02}"),
        )
        for i in range(CLIENTS)
    )
    return HorizontalAgreement(
        run="many/run",
        parties=tuple(parties),
        training=Training(),
        lab=True,
        model=SOFTMAX_REGRESSION,
        horizontal=Horizontal(rounds=2),
        nonce="cd" * 32,
    )


def test_a_party_writes_and_hashes_the_columns_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    plain = agreement._in_json

    def noted(fact: Any) -> bytes:
        written.append(fact)
        return plain(fact)

    monkeypatch.setattr(agreement, "_in_json", noted)
    run = federation()
    assert run.digest
    run.save(tmp_path)
    run.save(tmp_path)
    assert sum(fact == [vars(c) for c in COLUMNS] for fact in written) == 1
    assert (tmp_path / "federation.json").read_text().count("pixel_3") == 1


def test_the_digest_is_that_of_every_party_in_full(tmp_path: Path) -> None:
    run = federation()
    facts = run.agreed()
    for party in facts["parties"]:
        del party["signature"]
    full = json.dumps([facts[name] for name in run.AGREED], sort_keys=True)
    assert run.digest == blake2b(full.encode(), digest_size=32).digest()
    run.save(tmp_path)
    assert HorizontalAgreement.digest_in(tmp_path) == run.digest
    assert HorizontalAgreement.load(tmp_path).parties == run.parties


def test_a_file_that_repeats_the_columns_is_read_alike(tmp_path: Path) -> None:
    run = federation()
    run.save(tmp_path)
    file = tmp_path / "federation.json"
    facts = json.loads(file.read_text())
    file.write_text(json.dumps({**facts, **run.agreed()}))
    assert HorizontalAgreement.load(tmp_path).parties == run.parties
    assert FederationFile.model_validate(run.agreed()) == FederationFile.model_validate(
        {k: v for k, v in facts.items() if k in run.agreed()}
    )


def test_a_report_checks_the_columns_once(tmp_path: Path) -> None:
    federation().save(tmp_path)
    found = FederationFile.model_validate_json((tmp_path / "federation.json").read_bytes()).parties
    assert len(found) == CLIENTS
    assert all(party.columns is found[0].columns for party in found)


def test_a_message_names_the_columns_once() -> None:
    run = federation()
    message = encode_federation(run)
    assert sum(len(party.columns) for party in message.parties) == len(COLUMNS)
    assert decode_federation(message).parties == run.parties


def test_a_table_of_many_columns_is_opened_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"c{i}" for i in range(200)]
    file = tmp_path / "data.parquet"
    pq.write_table(pa.table({name: [1.0, 2.0, 3.0] for name in names}), file)
    table, opened = TableFile(file), list[Path]()
    plain = pq.ParquetFile

    def noted(path: Path, **more: Any) -> pq.ParquetFile:
        opened.append(path)
        return plain(path, **more)

    monkeypatch.setattr(pq, "ParquetFile", noted)
    assert [name for _, name, _ in table.chunks(names)] == names
    assert len(opened) == 1


def test_clients_of_one_process_make_what_they_share_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[str]()
    plain = HorizontalAgreement.agreed

    def noted(run: HorizontalAgreement) -> dict[str, Any]:
        made.append(run.run)
        return plain(run)

    monkeypatch.setattr(HorizontalAgreement, "agreed", noted)
    run = federation()
    run.save(tmp_path, party="a")
    before = len(made)
    run.save(tmp_path, party="b")
    assert len(made) == before
    facts = json.loads((tmp_path / "federation.json").read_text())
    assert (facts["party"], len(facts["parties"])) == ("b", CLIENTS)


def test_the_columns_that_all_describe_are_read_and_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Counter[str]()

    def counting(name: str) -> Callable[[Any], Any]:
        plain = getattr(party_info, name)

        def counted(column: Any) -> Any:
            counts[name] += 1
            return plain(column)

        return counted

    for name in ("_encoded", "_column"):
        monkeypatch.setattr(party_info, name, counting(name))
    own = tuple(replace(c, name=f"own_{c.name}") for c in COLUMNS)  # no test before left them to be recalled
    parties = [replace(party, columns=own) for party in federation().parties]
    sent = [party_info.encode_party(party).SerializeToString() for party in parties]
    assert [party_info.decode_party(PartyMessage.FromString(data)) for data in sent] == parties
    assert counts == {"_encoded": len(COLUMNS), "_column": len(COLUMNS)}
    other = replace(parties[0], columns=COLUMNS[:3])
    assert party_info.decode_party(party_info.encode_party(other)) == other
