"""A party that waits for others."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from laboratory import close, federation
from nonempty import nonempty

from vflens.config import Limits, Peer
from vflens.errors import UnavailableError
from vflens.services.process import wait_for
from vflens.types import Role


def test_it_waits_until_it_need_not_any_more(tmp_path: Path) -> None:
    """The coordinator may have come, failed and gone between two looks."""
    absent = Peer(name="c", role=Role.COORDINATOR, address=f"unix:{tmp_path}/socket", token="t" * 32)
    config: Any = SimpleNamespace(limits=Limits(wait_seconds=0.1), tls=None)
    event = threading.Event()
    with pytest.raises(UnavailableError, match="did not come within"):
        wait_for((absent,), config, lambda _: None, event)
    event.set()
    wait_for((absent,), config, lambda _: None, event)


def test_a_data_party_that_was_asked_waits_for_no_coordinator(tmp_path: Path) -> None:
    """A coordinator that died between two looks would else be waited for until ``wait_seconds`` are over."""
    local = federation(tmp_path)
    parties = nonempty(local.data_parties.values())
    assert not any(party.asked.is_set() for party in parties)
    local.coordinator.prepare()
    assert all(party.asked.is_set() for party in parties)
    close(local)
