"""What is put off until after a reply is done before anything that comes later."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import laboratory
from accidents import Around

from vflens.clients.vertical.aligned_run import AlignedRun
from vflens.clients.vertical.party import VerticalParty
from vflens.models.part import Part
from vflens.types import Phase, Role


def test_a_disclosure_is_recorded_after_the_last_step(tmp_path: Path) -> None:
    """Over gRPC another thread may bring the disclosure before the step's thread has settled."""

    class Unsettled(Around):
        def submit(self, act: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_result(local.active.perform(act, "coordinator", Role.COORDINATOR))
            return future

    local = laboratory.federation(tmp_path)
    links = local.coordinator.links
    links["active"] = Unsettled(links["active"])
    local.coordinator.prepare()
    local.coordinator.train()
    active: VerticalParty[AlignedRun[Part]] = local.active
    assert active._deferred is not None
    local.coordinator.disclose()
    active.settle()
    phases = [r.exchange.phase for r in active.transcript]
    assert phases == [*[Phase.TRAIN] * (len(phases) - 1), Phase.DISCLOSE]
