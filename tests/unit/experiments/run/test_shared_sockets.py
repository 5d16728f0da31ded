"""Clients that share a process have one socket; others, and who shows a certificate, have one each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from vflens.config import PartyConfig, ServerConfig, load_party
from vflens.experiments.run.dealer import deal_tables, write_parties
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.experiments.run.resume import _sharing

CLIENTS = [f"client-{i}" for i in range(1, 6)]
SHARED = [["server"], CLIENTS[:2], CLIENTS[2:]]


def dealt(home: Path, transport: str, shared: Any = SHARED) -> dict[str, PartyConfig]:
    what = HorizontalExperiment.model_validate(
        {
            "name": "small",
            "data": {"name": "synthetic", "rows": 200, "features": 6, "classes": 2},
            "parties": {"clients": 5},
            "horizontal": {"rounds": 2},
            "network": {"transport": transport},
        }
    )
    files = write_parties(what, what.scenarios[0], deal_tables(what), home, shared=shared)
    return {party: load_party(file) for party, file in files.items()}


def addresses(configs: dict[str, PartyConfig]) -> dict[str, str]:
    return {party: config.address for party, config in configs.items()}


def test_those_of_a_process_have_one_socket_and_meet_there_when_resumed(tmp_path: Path) -> None:
    configs = dealt(tmp_path, "unix")
    found = addresses(configs)
    assert len(set(found.values())) == 3
    assert found["client-1"] == found["client-2"] != found["client-3"] == found["client-5"]
    assert {p.name: p.address for p in configs["server"].peers} == {c: found[c] for c in CLIENTS}
    assert sorted(map(sorted, _sharing(found) or [])) == sorted(SHARED)


@pytest.mark.parametrize(("transport", "shared"), [("tcp", SHARED), ("unix", ())])
def test_others_have_one_each(tmp_path: Path, transport: str, shared: Any) -> None:
    found = addresses(dealt(tmp_path, transport, shared))
    assert len(set(found.values())) == 6
    assert _sharing(found) is None


def test_clients_with_certificates_do_not_share_an_address(tmp_path: Path) -> None:
    server = dealt(tmp_path, "unix")["server"].model_dump(mode="json", exclude_none=True)
    ServerConfig.model_validate(server)
    tls = {name: f"{name}.pem" for name in ("certificate", "key", "trust")}
    with pytest.raises(ValidationError, match="is given twice: every party listens at its own"):
        ServerConfig.model_validate({**server, "tls": tls})
