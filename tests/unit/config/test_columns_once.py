"""What files say of columns that clients have in common is read once, and never read otherwise."""

from __future__ import annotations

import tomllib

import pytest

from vflens.config.reading import toml
from vflens.config.writing import toml_text
from vflens.experiments.results.compare import masked
from vflens.experiments.results.files import FederationFile
from vflens.experiments.run.processes import shares

DATA = '[data]\nfile = "a.csv"\n\n[data.bounds]\na = [\n    0.0,\n    1.0,\n]\n'
#: Documents in which a header of `[data]` is none, is repeated, is a part of another, or stands elsewhere.
DOCUMENTS = (
    DATA,
    f'party = "a"\n{DATA}[[peers]]\nname = "b"\n',
    f"[limits]\nwait_seconds = 3.0\n{DATA}",
    f"[data.bounds]\nb = [1, 2]\n[peers]\n{DATA.replace('[data.bounds]', '[data.pixels]')}",
    f'text = """\n{DATA}"""\n',
    f"text = '''\n{DATA}'''\n{DATA}",
    'data.file = "a"\n',
    'data = {file = "a"}\n',
    '[ data ]\nfile = "a"\n[data.bounds]\na = [0, 1]\n',
    'grid = [\n[1, 2],\n[3, 4],\n]\n[data]\nfile = "a"\n',
    '"data" = 3\n',
    f"[data.bounds.inner]\nx = 1\n{DATA.replace('[data.bounds]', '[data.alphabets]')}",
    "",
)


@pytest.mark.parametrize("text", [*DOCUMENTS, *(text.replace("\n", "\r\n") for text in DOCUMENTS)])
def test_it_reads_what_the_library_reads(text: str) -> None:
    for _ in range(2):  # the second time from memory
        assert toml(text) == tomllib.loads(text)


@pytest.mark.parametrize(
    "text",
    [DATA + DATA, f'data.file = "a"\n{DATA}', f"data = 3\n{DATA}", f"{DATA}[data]\nb = 1\n", f"{DATA}x"],
)
def test_it_refuses_what_the_library_refuses_in_its_words(text: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError) as expected:
        tomllib.loads(text)
    with pytest.raises(tomllib.TOMLDecodeError) as found:
        toml(text)
    assert str(found.value) == str(expected.value)


def test_a_changed_document_changes_no_later_one() -> None:
    toml(DATA)["data"]["file"] = "another.csv"
    assert toml(DATA)["data"]["file"] == "a.csv"


def test_columns_are_written_as_they_were_and_once() -> None:
    settings = {
        "party": "a",
        "data": {"file": "a", "bounds": {"é": (0.0, 1.5)}, "caveat": None},
        "peers": [{"n": 1}],
    }
    plain = {"party": "a", "data": {"file": "a", "bounds": {"é": [0.0, 1.5]}}, "peers": [{"n": 1}]}
    assert tomllib.loads(toml_text(settings)) == plain
    assert tomllib.loads(toml_text({**settings, "data": None})) == {"party": "a", "peers": [{"n": 1}]}


def test_parties_of_another_file_are_read_anew() -> None:
    def party(name: str, rows: int) -> dict[str, object]:
        return {"name": name, "role": "client", "train_rows": rows}

    for rows in (3, 3, 4):
        file = FederationFile.model_validate({"setting": "horizontal", "parties": [party("a", rows)]})
        assert [p.train_rows for p in file.parties] == [rows]
    with pytest.raises(ValueError, match=r"parties\.0\.train_rows"):
        FederationFile.model_validate({"setting": "horizontal", "parties": [party("a", "x")]})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("clients", "processes", "sizes"),
    [
        (3, None, [1, 1, 1]),
        (5, 2, [2, 3]),
        (2, 8, [1, 1]),
        (32, None, [1] * 32),
        (100, 3, [33, 33, 34]),
        (0, 2, []),
    ],
)
def test_processes_take_as_many_clients_each(clients: int, processes: int | None, sizes: list[int]) -> None:
    roles = {"server": "server"} | {f"client-{i}": "client" for i in range(clients)}
    alone, *shared = shares(roles, processes)
    assert alone == ["server"]
    assert [len(group) for group in shared] == sizes
    assert [party for group in shared for party in group] == list(roles)[1:]


def test_more_clients_than_32_share_processes() -> None:
    roles = {f"client-{i}": "client" for i in range(33)}
    assert 1 <= len(shares(roles, None)) <= 33
    assert len(shares(dict.fromkeys(roles, "passive"), 1)) == 33  # only clients do


def test_a_report_masks_the_columns_once() -> None:
    config = {"seed": "s", "peers": [{"token": "t"}], "data": {"file": "a.csv", "bounds": {"a_key": [0, 1]}}}
    assert toml_text(config, masked) == toml_text(masked(config))
    assert "(secret)" not in toml_text(config)  # each way has a text of its own
