"""Secrets that can be guessed are refused outside lab mode, and ``vflens secrets init`` draws those that are
due.
"""

from __future__ import annotations

import secrets
import shlex
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from commandline import Run
from laboratory import deal, experiment

from vflens.config import ActiveConfig, PassiveConfig, load_party
from vflens.config.secrets import is_weak
from vflens.storage.private import write_private

EXAMPLES = Path(__file__).parents[3] / "examples"
PARTIES = ("passive", "active", "coordinator")
WEAK = [
    "7",
    "a" * 32,
    "0123456789" * 3 + "01",
    "deadbeef" * 8,
    "hush-hush-hush-hush",
    "1234567" * 6,
    "0f1e2d3c4b5a69788796a5b4c3d2e1",
    "private-seed-of-the-active-party",
]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """The three examples as their users' own."""
    return [Path(shutil.copy(EXAMPLES / f"{party}.toml", tmp_path)) for party in PARTIES]


def settings_of(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    write_private(file, text.replace(old, new))


@pytest.mark.parametrize("secret", WEAK)
def test_what_cannot_have_128_bits_is_weak(secret: str) -> None:
    assert is_weak(secret)


def test_what_is_drawn_is_not() -> None:
    for _ in range(2000):
        drawn = [secrets.token_hex(16), secrets.token_hex(32), secrets.token_urlsafe(96)]
        assert not any(map(is_weak, drawn))
    assert not is_weak(str(secrets.randbits(200) + 10**60))


@pytest.mark.parametrize(
    ("party", "field"),
    [
        ("passive", "seed"),
        ("passive", "alignment_key"),
        ("active", "operator_token"),
        ("coordinator", "token"),
    ],
)
def test_weak_ones_are_refused_with_the_command_that_mends_them(
    refused: Callable[..., str], vflens: Run, tmp_path: Path, party: str, field: str
) -> None:
    file = deal(experiment(tmp_path, lab=False), tmp_path)[party]
    settings = settings_of(file)
    (settings["peers"][0] if field == "token" else settings)[field] = "z" * 40
    write_private(file, tomli_w.dumps(settings))
    name = "peers.active.token" if field == "token" else field
    sentence = refused(2, "check", file)
    assert sentence == (
        f"{file}: {name} can be guessed, 128 random bits are needed: draw better with: vflens secrets init "
        f"{file}"
    )
    assert vflens(*shlex.split(sentence.rpartition(": vflens ")[2])).code == 0
    assert vflens("check", file).code == 0
    before, after = settings, settings_of(file)
    changed = {k for k in after if after[k] != before[k]}
    assert changed == {"peers" if field == "token" else field}


def test_lab_mode_takes_them(tmp_path: Path) -> None:
    file = deal(experiment(tmp_path), tmp_path)["coordinator"]
    write_private(file, tomli_w.dumps(settings_of(file) | {"seed": "7"}))
    assert load_party(file).seed == "7"


class TestInit:
    def test_three_files_become_one_federation(self, vflens: Run, files: list[Path]) -> None:
        comments = [line for line in files[0].read_text(encoding="utf-8").splitlines() if "#" in line]
        for file in files:
            file.chmod(0o644)
        assert vflens("secrets", "init", *files).code == 0
        loaded = {c.party: c for c in map(load_party, files)}
        drawn = [value for config in loaded.values() for _, value in config.secrets()]
        assert not any(is_weak(value) or value.startswith("example-") for value in drawn)
        tokens = {frozenset((c.party, p.name)): p.token for c in loaded.values() for p in c.peers}
        for config in loaded.values():
            assert {p.name: p.token for p in config.peers} == {
                p.name: tokens[frozenset((config.party, p.name))] for p in config.peers
            }
        keys = [c.alignment_key for c in loaded.values() if isinstance(c, PassiveConfig | ActiveConfig)]
        assert keys == [None, None]  # ids are blinded: no key is shared
        assert len(set(drawn)) == 7  # three seeds, three tokens, the operator's token
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
        kept = files[0].read_text(encoding="utf-8").splitlines()
        assert [line.partition("#")[2] for line in comments] == [
            line.partition("#")[2] for line in kept if "#" in line
        ]

    def test_good_ones_stay_and_go_into_the_other_file(self, vflens: Run, files: list[Path]) -> None:
        passive, active, coordinator = files
        token = f"it's{secrets.token_hex(16)}" + '\\"'
        change(active, "example-token-active-passive", token.replace("\\", "\\\\").replace('"', '\\"'))
        assert vflens("secrets", "init", active, passive).code == 0
        first = settings_of(active)
        assert first["peers"][1]["token"] == settings_of(passive)["peers"][1]["token"] == token
        assert vflens("secrets", "init", *files).code == 0
        assert settings_of(active) == first
        assert settings_of(coordinator)["peers"][0]["token"] == first["peers"][0]["token"]
        texts = [file.read_bytes() for file in files]
        ended = vflens("secrets", "init", *files)
        assert ended.out.count("every secret is good, no new one") == 3
        assert [file.read_bytes() for file in files] == texts

    def test_one_owner_learns_what_to_pass_on(self, vflens: Run, files: list[Path]) -> None:
        ended = vflens("secrets", "init", files[0])
        assert [line.strip() for line in ended.out.splitlines()] == [
            f"{files[0]}: drawn",
            "seed",
            "peers.coordinator.token: give the same to party 'coordinator', as its peers.passive.token",
            "peers.active.token: give the same to party 'active', as its peers.passive.token",
        ]
        assert not any(value in ended.out for _, value in load_party(files[0]).secrets())

    def test_missing_ones_are_added(self, vflens: Run, files: list[Path]) -> None:
        text = files[0].read_text(encoding="utf-8")
        bare = "\n".join(line for line in text.splitlines() if not line.startswith(("seed", "token")))
        files[0].write_text(bare, encoding="utf-8")
        assert vflens("secrets", "init", *files).code == 0
        assert len(list(load_party(files[0]).secrets())) == 3
        assert settings_of(files[0])["peers"][0]["token"] == settings_of(files[2])["peers"][1]["token"]

    @pytest.mark.parametrize("asked", ['alignment_key = "weak"', '[align]\nmode = "hmac"'])
    def test_data_parties_get_one_alignment_key_where_one_of_them_asks_for_it(
        self, vflens: Run, files: list[Path], asked: str
    ) -> None:
        before = files[0].read_text(encoding="utf-8")
        key = asked.startswith("alignment")
        files[0].write_text(f"{asked}\n{before}" if key else f"{before}\n{asked}\n", encoding="utf-8")
        assert vflens("secrets", "init", files[0]).out.splitlines()[2].strip() == (
            "alignment_key: give the same to every other data party, and never to the coordinator"
        )
        assert vflens("secrets", "init", *files).code == 0
        keys = [settings_of(file).get("alignment_key") for file in files]
        assert keys[0] == keys[1]
        assert not is_weak(str(keys[0]))
        assert keys[2] is None
        assert {load_party(f).aligns_by for f in files[:2]} == {"hmac"}

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('token = "example-token-active-passive"', 'token = """\nweak"""'),
            ('token = "example-token-active-passive"', "\"token\" = ''  # soon"),
            ('seed = "example-seed-of-the-passive-party"', "'seed' = ''"),
        ],
    )
    def test_a_secret_may_be_written_in_every_way_of_toml(
        self, vflens: Run, files: list[Path], old: str, new: str
    ) -> None:
        before = files[0].read_text(encoding="utf-8").splitlines()
        change(files[0], old, new)
        assert vflens("secrets", "init", *files).code == 0
        drawn = [value for _, value in load_party(files[0]).secrets()]
        assert len(drawn) == 3
        assert not any(is_weak(value) for value in drawn)
        after = files[0].read_text(encoding="utf-8").splitlines()
        secret = ("seed", "token", '"token"', "'seed'")
        others = [line for line in before if not line.startswith(secret)]
        assert [line for line in after if not line.startswith(secret)] == others

    def test_peers_may_stand_in_a_list(self, vflens: Run, files: list[Path]) -> None:
        settings = tomllib.loads(files[0].read_text(encoding="utf-8"))
        listed = ", ".join(
            f'{{name = "{p["name"]}", role = "{p["role"]}", address = "{p["address"]}", token = ""}}'
            for p in settings.pop("peers")
        )
        files[0].write_text(f"peers = [{listed}]\n{tomli_w.dumps(settings)}", encoding="utf-8")
        assert vflens("secrets", "init", *files).code == 0
        tokens = [peer.token for peer in load_party(files[0]).peers]
        assert len(set(tokens)) == 2
        assert not any(map(is_weak, tokens))

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ('role = "passive"', 'role = "judge"',
                    "role is 'judge': a party is passive, active, coordinator, client or server"),
            ('party = "passive"', 'party = "active"',
                    "two of the files configure party 'active': give those of one"),
            ("[data]", "[dat]", "data.file: it is missing; dat: there is no such setting, did you mean data"),
            ("[[peers]]", "[[peer]]", "peer: there is no such setting"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_filled_is_refused_and_left(
        self, refused: Callable[..., str], files: list[Path], old: str, new: str, words: str
    ) -> None:
        change(files[0], old, new)
        texts = [file.read_bytes() for file in files]
        assert words in refused(2, "secrets", "init", *files)
        assert [file.read_bytes() for file in files] == texts

    def test_two_good_ones_where_one_is_shared_are_the_users_to_choose(
        self, refused: Callable[..., str], files: list[Path]
    ) -> None:
        for file in files[:2]:
            change(file, "example-token-active-passive", secrets.token_hex(16))
        printed = refused(2, "secrets", "init", *files)
        assert printed == (
            f"peers.active.token in {files[0]} and peers.passive.token in {files[1]} must be the same and "
            "differ: empty the wrong one"
        )
