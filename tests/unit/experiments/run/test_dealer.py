"""What the dealer writes, and the folder that a run makes of it: secrets, one federation from one seed, how
it ended.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from laboratory import experiment
from nonempty import nonempty
from stubparty import short_folder

from vflens.config import (
    PartyConfig,
    PassiveConfig,
    Plugin,
    load_party,
)
from vflens.errors import ConfigError, StorageError
from vflens.experiments.run.dealer import deal_tables, remove_sockets, write_parties
from vflens.experiments.run.vertical.experiment import Experiment
from vflens.services.folder import begin, exclusive, write_status


def _dealt(folder: Path, **changes: Any) -> dict[str, PartyConfig]:
    what = experiment(folder, **changes)
    return {
        name: load_party(file)
        for name, file in write_parties(what, what.scenarios[0], deal_tables(what), folder).items()
    }


def test_the_dealer_gives_each_its_own_secrets(tmp_path: Path) -> None:
    dealt = _dealt(tmp_path, parties={"passive": ["a", "b"]})
    assert set(dealt) == {"a", "b", "active", "coordinator"}
    seeds = [c.seed for c in dealt.values()]
    assert len(set(seeds)) == len(seeds)
    tokens = {(name, p.name): p.token for name, c in dealt.items() for p in c.peers}
    assert all(tokens[b, a] == token for (a, b), token in tokens.items())
    assert len(set(tokens.values())) == len(tokens) / 2
    assert ("a", "b") not in tokens  # passive parties never meet
    for file in tmp_path.glob("*/config.toml"):
        assert file.stat().st_mode & 0o077 == 0
        others = [c.seed for name, c in dealt.items() if name != file.parent.name]
        assert not any(seed in file.read_text(encoding="utf-8") for seed in others)
    key = dealt["a"].alignment_key if isinstance(dealt["a"], PassiveConfig) else ""
    assert key
    assert key not in (tmp_path / "coordinator" / "config.toml").read_text(encoding="utf-8")


def test_one_seed_gives_one_federation(tmp_path: Path) -> None:
    def private(folder: str, seed: int) -> list[str]:
        dealt = _dealt(tmp_path / folder, seed=seed)
        return [c.seed for c in dealt.values()] + [p.token for c in dealt.values() for p in c.peers]

    assert private("a", 1) == private("b", 1)
    assert not set(private("c", 2)) & set(private("a", 1))


def test_outside_lab_mode_the_seed_alone_gives_no_secret(tmp_path: Path) -> None:
    dealt = [_dealt(tmp_path / folder, lab=False) for folder in "ab"]
    seeds = [c.seed for one in dealt for c in one.values()]
    assert len(set(seeds)) == len(seeds)
    tokens = {(name, p.name): p.token for name, c in dealt[0].items() for p in c.peers}
    assert all(tokens[b, a] == token for (a, b), token in tokens.items())


def test_local_parties_meet_where_no_other_user_can_listen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A port is free for every user of the machine to take first, and who has it gets the peers' tokens."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    settings = experiment(tmp_path).model_dump(mode="json", exclude={"network"}, exclude_none=True)
    what = Experiment.model_validate(settings)
    files = write_parties(what, what.scenarios[0], deal_tables(what), tmp_path / "dealt")
    for file in nonempty(files.values()):
        config = load_party(file)
        for address in (config.address, *(p.address for p in config.peers)):
            assert address.startswith("unix:/")
            folder = Path(address.removeprefix("unix:")).parent
            assert folder.stat().st_mode & 0o777 == 0o700


def test_folders_for_sockets_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    what, home = experiment(tmp_path, network={"transport": "unix"}), tmp_path / ("ä" * 45)
    files = write_parties(what, what.scenarios[0], deal_tables(what), home)
    assert len(list(tmp_path.glob("vflens-*"))) == 1
    remove_sockets(files)
    assert not list(tmp_path.glob("vflens-*"))


def test_sockets_go_elsewhere_where_other_users_can_change_their_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    what = experiment(tmp_path, network={"transport": "unix"})
    with short_folder() as home, short_folder() as temporary:
        monkeypatch.setattr("tempfile.tempdir", str(temporary))
        for mode, elsewhere in ((0o700, 0), (0o770, 1)):
            home.chmod(mode)
            files = write_parties(what, what.scenarios[0], deal_tables(what), home)
            assert len(list(temporary.glob("vflens-*"))) == elsewhere
        remove_sockets(files)
        monkeypatch.undo()


# --- the run folder


def test_dealing_over_a_run_moves_it_aside_whole(tmp_path: Path) -> None:
    """Its results beside another scenario's configuration would be reported as that one's."""
    first = _dealt(tmp_path, seed=1)["passive"]
    begin(first)
    config, table = (first.out / name for name in ("config.toml", "data.parquet"))
    was = config.read_bytes(), table.read_bytes()
    _dealt(tmp_path, seed=2)
    assert not (first.out / "status.json").exists()
    earlier = first.out / "earlier-1"
    assert ((earlier / "config.toml").read_bytes(), (earlier / "data.parquet").read_bytes()) == was
    assert (earlier / "status.json").exists()
    assert config.read_bytes() != was[0]
    assert table.exists()
    _dealt(tmp_path, seed=3)  # nothing has run since: dealt anew, nothing moved
    assert not (first.out / "earlier-2").exists()


def test_an_earlier_run_keeps_its_table(tmp_path: Path) -> None:
    """Whoever scores on it later needs the table that its rows are of, whatever the folder's own becomes."""
    config = _dealt(tmp_path, seed=1)["passive"]
    assert isinstance(config, PassiveConfig)
    table = config.data.file.read_bytes()
    begin(config)
    begin(config)
    _dealt(tmp_path, seed=2)
    assert config.data.file.read_bytes() != table
    for number in (1, 2):
        earlier = load_party(config.out / f"earlier-{number}" / "config.toml")
        assert isinstance(earlier, PassiveConfig)
        assert earlier.data.file.read_bytes() == table
        assert earlier.out == config.out / f"earlier-{number}"


@pytest.mark.parametrize("table", ["../bank.parquet", "bank.parquet"])
def test_an_earlier_run_of_a_file_in_its_own_words_means_what_it_did(tmp_path: Path, table: str) -> None:
    """A hand-written configuration in the party's folder; one earlier run before another was configured
    there, one after.
    """
    dealt = _dealt(tmp_path)["passive"]
    file = dealt.out / "config.toml"
    (dealt.out / "data.parquet").rename(dealt.out / table)
    text = file.read_text(encoding="utf-8").replace("data.parquet", table)
    file.write_text(text.replace('out = "."', f'out = "{dealt.out}"'), encoding="utf-8")
    mine = load_party(file)
    assert isinstance(mine, PassiveConfig)
    begin(mine)
    begin(mine)
    begin(mine.model_copy(update={"run": "another"}))
    for number in (1, 2):
        earlier = load_party(dealt.out / f"earlier-{number}" / "config.toml")
        assert isinstance(earlier, PassiveConfig)
        assert earlier.data.file.exists()
        assert earlier.model_copy(update={"out": mine.out, "data": mine.data, "tls": mine.tls}) == mine
        assert earlier.out == dealt.out / f"earlier-{number}"


def test_a_running_party_is_not_dealt_to(tmp_path: Path) -> None:
    dealt = _dealt(tmp_path, seed=1)
    files = sorted(tmp_path.glob("*/config.toml"))
    was = [file.read_bytes() for file in files]
    with (
        exclusive(dealt["passive"].out),
        pytest.raises(ConfigError, match=r"^run folder .*passive is in use by another party's process: "),
    ):
        _dealt(tmp_path, seed=2)
    assert [file.read_bytes() for file in files] == was  # nor to its peers: their tokens would differ


def test_an_unknown_network_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VFLENS_NETWORK", "servics")
    with pytest.raises(
        ConfigError, match=r"^VFLENS_NETWORK = 'servics' is unknown: set it to 'services', or"
    ):
        _dealt(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_run_folder_holds_the_configuration_in_use(tmp_path: Path) -> None:
    """Two runs with different defences in one folder; the dealt file in its own folder stays as it is."""
    dealt = _dealt(tmp_path)
    first = dealt["passive"]
    file = first.out / "config.toml"
    text = file.read_text(encoding="utf-8")
    begin(first)
    assert file.read_text(encoding="utf-8") == text
    second = first.model_copy(update={"defenses": (Plugin(name="gaussian_scores", sigma=0.5),)})
    begin(second)
    assert (first.out / "earlier-1" / "config.toml").read_text(encoding="utf-8") == text
    found = load_party(file)
    assert found.defenses == second.defenses
    assert isinstance(found, PassiveConfig)
    assert isinstance(first, PassiveConfig)
    assert found.data.file == first.data.file.resolve()
    assert found.out.resolve() == first.out.resolve()
    assert file.stat().st_mode & 0o777 == 0o600
    assert first.out.stat().st_mode & 0o777 == 0o700
    begin(second)
    assert load_party(first.out / "earlier-2" / "config.toml").defenses == second.defenses


def test_how_a_run_ended_is_said_on_a_full_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_status(tmp_path, "running", "a reason that is longer than the next one")

    def full(file: Path, data: bytes) -> None:
        raise StorageError("no space left")

    monkeypatch.setattr("vflens.services.folder.write_whole", full)
    write_status(tmp_path, "failed", "why")
    assert json.loads((tmp_path / "status.json").read_text(encoding="utf-8")) == {
        "state": "failed",
        "reason": "why",
    }
    with pytest.raises(StorageError, match="no space left"):
        write_status(tmp_path / "nowhere", "failed")


def test_a_sample_is_drawn_by_the_seed_and_keeps_a_given_split(tmp_path: Path) -> None:
    def ids(**changes: Any) -> set[bytes]:
        return set(deal_tables(experiment(tmp_path, **changes))["passive"].ids.tolist())

    data = {"name": "synthetic", "rows": 90, "features": 7}
    drawn = ids(data={**data, "sample": 40})
    assert len(drawn) == 40
    assert drawn < ids(data=data)
    assert drawn == ids(data={**data, "sample": 40})
    assert drawn != ids(data={**data, "sample": 40}, seed=4)
    with pytest.raises(ConfigError, match=r"^data.sample = 91: the table has 90 rows, ask for fewer$"):
        ids(data={**data, "sample": 91})
