"""A data party that is killed when all is done, and comes back after the run's end: it ends well."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import horizontal
import pytest
from laboratory import close, deal, experiment
from oneprocess import LocalFederation
from processes import change, waited

from vflens.config import PartyConfig, PassiveConfig, load_party
from vflens.errors import ConfigError, StorageError, UnavailableError
from vflens.services import process
from vflens.services.folder import begin, is_over, write_status
from vflens.services.hall import Hall


def until_the_end(home: Path, *, attacked: bool = True, stopped: bool = False) -> dict[str, PartyConfig]:
    """A run whose data parties have attacked, then the end of all processes; their configurations."""
    files = deal(experiment(home, network={"transport": "unix"}), home)
    for file in files.values():
        change(file, resume=True)
        begin(load_party(file))
    local = LocalFederation(files, lambda stage, done, total: None)
    local.coordinator.lead()
    if attacked:
        local.complete()
    if stopped:
        local.coordinator.stop()
    close(local)
    write_status(local.coordinator.folder, "finished")
    return {party: load_party(file) for party, file in files.items()}


def serve_passive(config: PartyConfig, heard: list[str]) -> None:
    """Do what `vflens serve` does, once the folder is held."""
    assert isinstance(config, PassiveConfig)
    limits = config.limits.model_copy(update={"wait_seconds": 0.2})
    waiting = config.model_copy(update={"limits": limits})
    assert begin(waiting)
    waits = process._serve_data_party(
        waiting, heard.append, lambda stage, done, total: None, Hall(), resumed=True, hosted=False
    )
    waited(waits)


def test_it_waits_for_the_coordinator_then_ends_well(tmp_path: Path) -> None:
    configs, heard = until_the_end(tmp_path), list[str]()
    serve_passive(configs["passive"], heard)
    assert any(
        "did not come within 0.2 s" in s and "own work is complete: if the run is not" in s for s in heard
    )
    write_status(configs["passive"].out, "finished")
    assert not is_over(configs["passive"]), "the coordinator may only have been late"
    assert is_over(configs["coordinator"])


def test_one_that_was_told_of_the_end_needs_no_coordinator(tmp_path: Path) -> None:
    configs, heard = until_the_end(tmp_path, stopped=True), list[str]()
    serve_passive(configs["passive"], heard)
    assert not any("did not come" in sentence for sentence in heard)
    write_status(configs["passive"].out, "finished")
    assert is_over(configs["passive"])


def test_one_whose_work_is_not_done_needs_the_coordinator(tmp_path: Path) -> None:
    configs = until_the_end(tmp_path, attacked=False)
    with pytest.raises(UnavailableError, match=r"'coordinator' at .* did not come within 0\.2 s: start it"):
        serve_passive(configs["passive"], [])


def test_a_run_that_failed_is_not_over(tmp_path: Path) -> None:
    """A party that is told of a failure can be resumed."""
    files = deal(experiment(tmp_path), tmp_path)
    for file in files.values():
        begin(load_party(file))
    local = LocalFederation(files, lambda stage, done, total: None)
    local.coordinator.lead()
    local.complete()
    local.coordinator.stop("the disk of the coordinator is full")
    close(local)
    assert not local.passive["passive"].reached.ended
    assert not any(is_over(load_party(file)) for file in files.values())


def test_a_finished_server_needs_no_client(tmp_path: Path) -> None:
    files = horizontal.deal(tmp_path, {"a": horizontal.table(20, 1), "b": horizontal.table(20, 2)})
    for file in files.values():
        begin(load_party(file))
    horizontal.federation(files).run()
    assert [is_over(load_party(file)) for file in files.values()] == 3 * [True]


def test_a_finished_run_is_not_over_for_other_settings(tmp_path: Path) -> None:
    passive = until_the_end(tmp_path, stopped=True)["passive"]
    write_status(passive.out, "finished")
    with pytest.raises(
        ConfigError, match=r"^seed of party 'passive' is not that of the run in .*: bring it back"
    ):
        is_over(passive.model_copy(update={"seed": "another"}))


def test_a_finished_party_that_is_resumed_says_so_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "stop_on_signals", lambda: None)
    passive, heard = until_the_end(tmp_path, stopped=True)["passive"], list[str]()
    write_status(passive.out, "finished")
    before = (passive.out / "status.json").read_bytes()
    process.serve(passive, heard.append, lambda stage, done, total: None)
    assert heard == [
        f"the run in {passive.out} is finished: begin a new one without --resume (or with --no-resume)"
    ]
    assert (passive.out / "status.json").read_bytes() == before


def _flip(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(bytes([data[0] ^ 1]) + data[1:])


def _halve(file: Path) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[: len(lines) // 2]))


@pytest.mark.parametrize(
    ("file", "harm", "refused"),
    [
        (
            "transcript/index.jsonl",
            _halve,
            r"transcript has 6 records, and had 12, as state\.json \(heads\.transcript\) says",
        ),
        (
            "transcript/chain.bin",
            Path.unlink,
            r"transcript has 0 records, and had 12, as state\.json \(heads\.transcript\) says",
        ),
        ("transcript/chain.bin", _flip, "transcript was changed at record 1"),
        ("transcript/payload.bin", _flip, "transcript was changed at record 1"),
        ("released/payload.bin", _flip, "released was changed at record 1"),
        (
            "released/digests.bin",
            _flip,
            r"digests\.bin was changed up to record 13, as state\.json \(heads\.digests\) says",
        ),
        (
            "released/digests.bin",
            Path.unlink,
            r"digests\.bin was changed up to record 13, as state\.json \(heads\.digests\) says",
        ),
    ],
)
def test_a_run_whose_evidence_was_changed_is_not_resumed(
    tmp_path: Path, file: str, harm: Callable[[Path], None], refused: str
) -> None:
    config = until_the_end(tmp_path)["passive"]
    write_status(config.out, "interrupted")
    assert begin(config), "unchanged, it goes on"
    status = (config.out / "status.json").read_bytes()
    harm(config.out / file)
    with pytest.raises(
        StorageError, match=rf"{refused}: bring back the folder as it was, or begin a new run"
    ):
        begin(config)
    assert (config.out / "status.json").read_bytes() == status


@pytest.mark.parametrize("durable", ["process", "machine"])
def test_only_a_loss_of_power_explains_a_link_without_its_record(tmp_path: Path, durable: str) -> None:
    config = until_the_end(tmp_path)["passive"]
    (config.out / "status.json").write_text('{"state": "running", "reason": ""}')  # as before kill -9
    state = json.loads((config.out / "state.json").read_text())
    (config.out / "state.json").write_text(json.dumps(state | {"heads": {}}))  # as before training
    _halve(config.out / "transcript" / "index.jsonl")
    limits = config.limits.model_copy(update={"durable": durable})
    waiting = config.model_copy(update={"limits": limits})
    if durable == "process":
        assert begin(waiting)
    else:
        with pytest.raises(StorageError, match=r"transcript has 6 records, and had 12: bring back"):
            begin(waiting)
