"""What is asked again is answered and leaves no line in a log: repetitions have no bound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from horizontal import clients_of, deal, server_of, table
from horizontal import federation as joined
from laboratory import close, federation, let_go_later
from nonempty import nonempty

from vflens.protocol.acts import Act, Disclose, Guess, Submission
from vflens.protocol.link import Link
from vflens.types import Point

GRANTS = [
    {"what": "parameters", "to": "active"},
    {"what": "moments", "to": "active"},
    {"what": "labels", "to": "passive", "rows": 5},
]


def _grown(folder: Path, link: Link, act: Act[Any]) -> int:
    """The bytes by which the log in ``folder`` grows where ``act`` is asked thrice more."""
    link.call(act)
    before = (folder / "events.jsonl").stat().st_size
    for _ in range(3):
        link.call(act)
    return (folder / "events.jsonl").stat().st_size - before


def test_disclosures_and_submissions_are_logged_once(tmp_path: Path) -> None:
    local = federation(tmp_path, disclose=GRANTS, attacks=[])
    local.coordinator.prepare()
    local.coordinator.train()
    passive, active, run = local.passive["passive"], local.active, "tiny/run"
    for party, to in ((passive, "active"), (active, "passive")):
        assert not _grown(party.folder, local.coordinator.links[party.name], Disclose(run, 1, to))
    local.coordinator.open_predictions()
    active.predict_and_attack()
    rows = passive.gate.released_rows(Point.EMBEDDING, 1)
    guess = Guess(
        "half", np.full((len(rows), len(passive.table.columns)), 0.5), np.zeros(len(rows), np.uint8)
    )
    submission = Submission(run, "active", "predict", rows, guesses=(guess,))
    assert not _grown(passive.folder, active.links["passive"], submission)
    for party, what in ((passive, '"disclosed"'), (active, '"disclosed"'), (passive, '"scored"')):
        assert (party.folder / "events.jsonl").read_text(encoding="utf-8").count(what) in (1, 2)
    close(local)


def test_a_client_s_disclosures_are_logged_once(tmp_path: Path) -> None:
    grants = [{"what": "moments", "to": "server"}]
    settings: dict[str, Any] = {"horizontal": {"rounds": 1}, "disclose": grants}
    local = let_go_later(joined(deal(tmp_path, {"a": table(20, 1), "b": table(20, 2)}, **settings)))
    server = server_of(local)
    server.prepare()
    server.train()
    for name, client in nonempty(clients_of(local).items()):
        assert not _grown(client.folder, server.links[name], Disclose("tiny/run", 1, "server"))
        assert (client.folder / "events.jsonl").read_text(encoding="utf-8").count('"disclosed"') == 1
    close(local)
