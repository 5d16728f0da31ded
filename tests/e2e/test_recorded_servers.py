"""Recorded servers whose clients are drawn, fail, change their rows or run in NVFlare are read right."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commandline import Run, vflens

from vflens.errors import DataError
from vflens.experiments.imports.averaged import import_recording
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.recorded.horizontal.parameters import parameters_of
from vflens.storage.files import load_arrays
from vflens.storage.journal import Reader
from vflens.types import Array, Point, Released

_FIXTURES = (vflens,)  # used by name
ROOT = Path(__file__).parents[2]
RECORDED, APP = ROOT / "examples/recorded", ROOT / "examples/flower/app.toml"
STRATEGY, NVFLARE = RECORDED / "flower_strategy", RECORDED / "nvflare"
TINY = """run = "tiny"
classes = ["no", "yes"]
columns = ["a", "b"]
[training]
optimizer = "sgd"
learning_rate = 0.1
batch_size = 4
[horizontal]
local_steps = 1
"""


def imported(recording: Path, out: Path, config: Path = APP) -> tuple[HorizontalAgreement, list[Released]]:
    """What a recording becomes."""
    import_recording(recording, config, out)
    return HorizontalAgreement.load(out), list(Reader(out / "transcript"))


def lines_of(recording: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (recording / "messages.jsonl").read_text().splitlines()]


def by_hand(weight: Array, bias: Array, file: str, rows: slice) -> tuple[Array, Array]:
    """One step of gradient descent on ``rows`` of a client's file, by loops."""
    table = np.loadtxt(ROOT / "examples/flower" / file, delimiter=",", skiprows=1)[rows]
    of_weight, of_bias = np.zeros_like(weight), np.zeros_like(bias)
    for row in table:
        x = row[1:-1] / 16
        odds = np.exp([w @ x + b for w, b in zip(weight, bias, strict=True)])
        for k in range(len(bias)):
            error = odds[k] / odds.sum() - (k == row[-1])
            of_weight[k] += error * x
            of_bias[k] += error
    return -0.1 * of_weight / len(table), -0.1 * of_bias / len(table)


def test_drawn_clients_with_other_rows_in_each_round(tmp_path: Path) -> None:
    """Client 1 is drawn in rounds 2 and 3, client 2 in round 1, client 3 in all, and fails in round 2."""
    federation, messages = imported(STRATEGY, tmp_path / "server")
    updates = [m for m in messages if m.point is Point.UPDATE]
    sites = {m["node"]: m["metrics"]["site"] for m in lines_of(STRATEGY) if "site" in m["metrics"]}
    names = {f"client-{i}": sites[node] for i, node in enumerate(sorted(sites, key=int), 1)}
    rows = [{names[u.sender]: federation.recorded_rows[u.exchange.round][u.sender]} for u in updates]
    assert sorted(map(str, rows)) == sorted(
        map(str, [{"ward 2": 3}, {"ward 3": 4}, {"ward 1": 3}, {"ward 1": 4}, {"ward 3": 6}])
    )
    weight, bias = np.zeros((10, 64)), np.zeros(10)
    at = parameters_of(
        federation, load_arrays(tmp_path / "server/own.npz"), Reader(tmp_path / "server/transcript")
    )
    for number in range(3):
        np.testing.assert_allclose(at(number)["weight"], weight, atol=1e-12)
        total, before = 0, (weight.copy(), bias.copy())
        sums = np.zeros_like(weight), np.zeros_like(bias)
        for update in (u for u in updates if u.exchange.round == number):
            client = int(names[update.sender][-1])
            n = client + number + 1
            due = by_hand(*before, f"client-{client}.csv", slice(n))
            np.testing.assert_allclose(update.tensor("weight"), due[0], atol=1e-12)
            np.testing.assert_allclose(update.tensor("bias"), due[1], atol=1e-12)
            sums = sums[0] + n * due[0], sums[1] + n * due[1]
            total += n
        weight, bias = weight + sums[0] / total, bias + sums[1] / total
    np.testing.assert_allclose(at(3)["weight"], weight, atol=1e-12)


def test_what_crosses_beside_arrays_is_in_the_ledger(vflens: Run, tmp_path: Path) -> None:
    imported(STRATEGY, tmp_path / "server")
    found = json.loads(vflens("ledger", tmp_path / "server", "--json").out)["runs"][0]["lines"]
    counts: dict[str, int] = {}
    for line in found:
        counts[line["point"]] = counts.get(line["point"], 0) + line["count"]
    trained, evaluated = "metrics: loss, num_examples, site", "metrics: bad, loss, num_examples"
    assert counts == {"update": 5, trained: 5, evaluated: 9}
    sizes = {line["nbytes"] / line["count"] for line in found if line["point"] == trained}
    assert sizes == {8 + 8 + len("ward 1")}
    assert "all that could be checked fits" in vflens("verify-log", tmp_path / "server").out


def test_two_clients_of_nvflare(vflens: Run, tmp_path: Path) -> None:
    federation, messages = imported(NVFLARE, tmp_path / "server")
    assert [(p.name, p.train_rows) for p in federation.parties] == [("client-1", 1), ("client-2", 1)]
    for update in (m for m in messages if m.point is Point.UPDATE and m.exchange.round == 0):
        due = by_hand(np.zeros((10, 64)), np.zeros(10), f"{update.sender}.csv", slice(1))
        np.testing.assert_allclose(update.tensor("weight"), due[0], atol=1e-12)
    attack = ("--attack", "softmax_inversion", "--target", "client-2", "--out", tmp_path / "e.npz")
    assert vflens("attack", tmp_path / "server", *attack).code == 0
    digit = np.loadtxt(ROOT / "examples/flower/client-2.csv", delimiter=",", skiprows=1)[0, 1:-1] / 16
    np.testing.assert_allclose(np.load(tmp_path / "e.npz")["values"][0], digit, atol=1e-12)
    ledger = vflens("ledger", tmp_path / "server", "--json").out
    assert "metrics: NUM_STEPS_CURRENT_ROUND, loss" in ledger


def test_the_earlier_name_of_the_command_is_kept(vflens: Run, tmp_path: Path) -> None:
    assert vflens("import-flower", NVFLARE, "--config", APP, "--out", tmp_path / "server").code == 0
    assert "import-flower" not in vflens("--help").out


Round = Mapping[str, tuple[float, Any]]  # node → its update of every number, and its metrics


def recording(
    folder: Path, rounds: list[Round], mean: Callable[[Round], float], kind: str = "<f8", **facts: Any
) -> Path:
    """A recording whose parameters, all of one value, change by ``mean`` of each round."""
    folder.mkdir()
    lines: list[dict[str, Any]] = []
    value = 0.0

    def write(number: int, node: str, direction: str, held: float, metrics: Any) -> None:
        file = f"{len(lines)}.npz"
        arrays = np.full((2, 2), held, kind), np.full(2, held, kind)
        np.savez(folder / file, *arrays)
        of = {"round": number, "node": node, "direction": direction, "file": file, "names": ["0", "1"]}
        lines.append({**of, "metrics": metrics, **facts})

    for number, clients in enumerate(rounds, 1):
        for node in clients:
            write(number, node, "sent", value, {})
        for node, (update, metrics) in clients.items():
            write(number, node, "received", update if facts.get("difference") else value + update, metrics)
        value += mean(clients)
    (folder / "messages.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def by_rows(name: str) -> Callable[[Round], float]:
    def mean(clients: Round) -> float:
        total = sum(metrics[name] for _, metrics in clients.values())
        return float(sum(u * metrics[name] for u, metrics in clients.values()) / total)

    return mean


def n(rows: float, name: str = "num-examples") -> dict[str, Any]:
    return {name: rows}


CHANGING: list[Round] = [
    {"1": (1.0, n(10)), "2": (2.0, n(30))},
    {"2": (4.0, n(7)), "3": (-1.0, n(1))},
    {"1": (0.5, n(0)), "3": (3.0, n(9))},
    {"1": (1.5, n(60))},
]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.toml"
    file.write_text(TINY)
    return file


@pytest.mark.parametrize("kind", ["<f8", "<f4", "<f2", ">f8"])
def test_each_round_is_weighed_by_its_own_rows(tmp_path: Path, tiny: Path, kind: str) -> None:
    made = recording(tmp_path / "made", CHANGING, by_rows("num-examples"), kind)
    federation, messages = imported(made, tmp_path / "server", tiny)
    assert [(p.name, p.train_rows) for p in federation.parties] == [
        ("client-1", 60), ("client-2", 30), ("client-3", 9),
    ]  # fmt: skip
    folder = tmp_path / "server"
    at = parameters_of(federation, load_arrays(folder / "own.npz"), Reader(folder / "transcript"))
    due = [0, 1.75, 1.75 + 27 / 8, 1.75 + 27 / 8 + 3, 1.75 + 27 / 8 + 4.5]
    near = 0.02 if kind == "<f2" else 1e-5
    np.testing.assert_allclose([at(number)["bias"][0] for number in range(5)], due, atol=near)
    assert sum(m.point is Point.METRICS for m in messages) == 7


def test_other_metrics_weigh(tmp_path: Path, tiny: Path) -> None:
    """A metric that the app names; NVFlare's steps, each of a batch, and 1 of who sends none."""
    for place, name in enumerate(("n", "NUM_STEPS_CURRENT_ROUND")):
        rounds: list[Round] = [{"a": (1.0, n(3, name)), "b": (5.0, n(1, name))}] * 2
        file = tmp_path / f"{place}.toml"
        file.write_text(f'weighted_by = "{name}"\n{TINY}')
        made = recording(tmp_path / f"made{place}", rounds, by_rows(name))
        federation, _ = imported(made, tmp_path / f"server{place}", file)
        batch = (1, 4)[place]
        assert [p.train_rows for p in federation.parties] == [3 * batch, batch]
    silent: list[Round] = [{"a": (1.0, {}), "b": (5.0, {})}] * 2
    made = recording(
        tmp_path / "silent", silent, lambda _: 3.0, weighted_by="NUM_STEPS_CURRENT_ROUND", difference=True
    )
    _, messages = imported(made, tmp_path / "server", tiny)
    assert [m.tensor("bias")[0] for m in messages] == [1.0, 5.0, 1.0, 5.0]


def test_an_equal_mean_needs_no_rows(tmp_path: Path, tiny: Path) -> None:
    rounds: list[Round] = [{"a": (1.0, {}), "b": (5.0, {})}] * 2
    made = recording(tmp_path / "made", rounds, lambda _: 3.0)
    with pytest.raises(DataError, match=r'set horizontal\.weights = "equal"'):
        imported(made, tmp_path / "server", tiny)
    tiny.write_text(f'{TINY}weights = "equal"\n')
    federation, _ = imported(made, tmp_path / "server", tiny)
    assert [p.train_rows for p in federation.parties] == [4, 4]


def changed(change: Callable[[list[dict[str, Any]]], Any]) -> Callable[[Path], None]:
    def of(folder: Path) -> None:
        lines = lines_of(folder)
        change(lines)
        (folder / "messages.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    return of


def test_rounds_in_which_nobody_answers_change_nothing(tmp_path: Path, tiny: Path) -> None:
    made = recording(tmp_path / "made", [*CHANGING[:1], {"1": (0.0, n(1))}, *CHANGING[1:]], lambda c: (
        0.0 if list(c.values()) == [(0.0, n(1))] else by_rows("num-examples")(c)
    ))  # fmt: skip
    changed(lambda lines: lines[5].update(file=None, error="it stopped") or lines[5].pop("file"))(made)
    federation, _ = imported(made, tmp_path / "server", tiny)
    assert federation.epochs == 4
    assert federation.recorded_rows[1] == {"client-2": 7, "client-3": 1}


def test_a_client_that_is_evaluated_only_is_no_client_of_the_run(tmp_path: Path, tiny: Path) -> None:
    made = recording(tmp_path / "made", CHANGING[:2], by_rows("num-examples"))
    line = {"round": 2, "node": "4", "direction": "received", "type": "evaluate", "metrics": {"loss": 1.0}}
    changed(lambda lines: lines.append(line))(made)
    federation, messages = imported(made, tmp_path / "server", tiny)
    assert [p.name for p in federation.parties] == ["client-1", "client-2", "client-3"]
    assert (messages[-1].sender, messages[-1].tensor("loss").tolist()) == ("client-4", [1.0])


def evaluated(held: float) -> Callable[[Path], None]:
    def of(folder: Path) -> None:
        np.savez(folder / "last.npz", np.full((2, 2), held), np.full(2, held))
        line = {"round": 2, "node": "1", "direction": "sent", "type": "evaluate", "file": "last.npz"}
        changed(lambda lines: lines.append(line))(folder)

    return of


def test_what_was_evaluated_last_is_the_mean(tmp_path: Path, tiny: Path) -> None:
    made = recording(tmp_path / "made", CHANGING[:2], by_rows("num-examples"))
    evaluated(1.75 + 27 / 8)(made)
    imported(made, tmp_path / "server", tiny)


def values(file: str, *arrays: Array) -> Callable[[Path], None]:
    return lambda folder: np.savez(folder / file, *arrays)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (evaluated(0.0), "what was evaluated after round 2 is not the clients' mean"),
        (values("2.npz", np.full((2, 2), np.nan), np.zeros(2)), "node 1 has numbers that are not finite"),
        (values("2.npz", np.full((2, 2), "a"), np.zeros(2)), "line 3, cannot be read"),
        (values("2.npz", np.full((2, 2), 1j), np.zeros(2)), "line 3, cannot be read"),
        (changed(lambda lines: lines[2].update(direction="up")), "line 3, cannot be read"),
        (changed(lambda lines: lines[2].update(metrics=[1])), "line 3, cannot be read"),
        (changed(lambda lines: lines[2].update(metrics={"num-examples": [10]})), "let it send its number"),
        (changed(lambda lines: [x.pop("file") for x in lines if x["direction"] != "sent"]), "no client's"),
        (changed(lambda lines: lines[6]["metrics"].update({"num-examples": 70})), None),
        (changed(lambda lines: lines[2]["metrics"].update({"num-examples": 70})), "round 2 does not begin"),
    ],
)  # fmt: skip
def test_wrong_twins(tmp_path: Path, tiny: Path, change: Callable[[Path], None], words: str | None) -> None:
    made = recording(tmp_path / "made", CHANGING[:2], by_rows("num-examples"))
    change(made)
    if words is None:  # nothing follows the last round that could contradict it
        imported(made, tmp_path / "server", tiny)
        return
    with pytest.raises(DataError, match=words):
        imported(made, tmp_path / "server", tiny)
    assert not (tmp_path / "server").exists()


def test_rows_of_rounds_are_sealed(tmp_path: Path, tiny: Path) -> None:
    imported(recording(tmp_path / "made", CHANGING, by_rows("num-examples")), tmp_path / "server", tiny)
    file = tmp_path / "server/federation.json"
    file.write_text(file.read_text().replace('"client-1": 10', '"client-1": 11'))
    with pytest.raises(Exception, match="was changed after its run began"):
        HorizontalAgreement.load(tmp_path / "server")


@pytest.fixture(scope="module")
def recorder() -> ModuleType:
    """The file that is copied."""
    spec = importlib.util.spec_from_file_location("recorder", ROOT / "examples/recorder/vflens_recorder.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def message(node: int, group: str = "", *, code: int | None = None, arrays: bool = True) -> SimpleNamespace:
    """Messages like Flower's, of training; with ``code`` a reply of the Strategy API."""
    metrics = {"fitres.num_examples": {"num_examples": 5}}
    status = {} if code is None else {"fitres.status": {"code": code, "message": "not today"}}
    content = SimpleNamespace(
        array_records={"parameters": {"0": np.ones(2)}} if arrays else {},
        metric_records={} if code is None else metrics,
        config_records={"fitres.metrics": {"num_examples": 3, "key": b"1234"}, **status},
    )
    metadata = SimpleNamespace(message_type="train", dst_node_id=node, src_node_id=node, group_id=group)
    return SimpleNamespace(metadata=metadata, content=content, has_error=lambda: False)


@pytest.mark.parametrize(
    ("sent", "rounds"),
    [
        ([[(1, ""), (2, "")], [(1, ""), (3, "")]], [1, 1, 2, 2]),
        ([[(1, "1")], [(2, "1")], [(1, "2")], [(3, "2")]], [1, 1, 2, 2]),  # a thread for each client
        ([[(1, "x")], [(1, "x")]], [1, 2]),  # one group for all
    ],
)
def test_rounds_are_told_apart(
    tmp_path: Path, recorder: ModuleType, sent: list[list[tuple[int, str]]], rounds: list[int]
) -> None:
    grid = SimpleNamespace(send_and_receive=lambda messages: messages)
    recording = recorder.FlowerGrid(grid, tmp_path / "made")
    for together in sent:
        recording.send_and_receive([message(*of) for of in together])
    asked = [line["round"] for line in lines_of(tmp_path / "made") if line["direction"] == "sent"]
    assert asked == rounds


def test_a_reply_of_the_strategy_api(tmp_path: Path, recorder: ModuleType) -> None:
    grid = SimpleNamespace(pull_messages=lambda ids: [message(1, code=0), message(2, code=1)])
    recorder.FlowerGrid(grid, tmp_path / "made").pull_messages([])
    returned, failed = lines_of(tmp_path / "made")
    assert returned["metrics"] == {"num_examples": 5, "fitres.metrics.num_examples": 3, "key": "4 bytes"}
    assert (failed["error"], "file" in failed) == ("not today", False)
    shutil.rmtree(tmp_path / "made")


def test_a_client_without_rows_has_no_part(tmp_path: Path, tiny: Path) -> None:
    """In one round, and in all."""
    rounds: list[Round] = [
        {"1": (1.0, n(10)), "2": (9.0, n(0)), "3": (7.0, n(0))},
        {"1": (1.0, n(0)), "2": (4.0, n(2))},
    ]
    made = recording(tmp_path / "made", rounds, by_rows("num-examples"))
    federation, messages = imported(made, tmp_path / "server", tiny)
    assert [p.name for p in federation.parties] == ["client-1", "client-2"]
    updates = [m for m in messages if m.point is Point.UPDATE]
    assert [(m.sender, m.exchange.round) for m in updates] == [("client-1", 0), ("client-2", 1)]


def test_node_numbers_and_names_are_in_order(tmp_path: Path, tiny: Path) -> None:
    made = recording(tmp_path / "made", [{node: (1.0, n(1)) for node in ("10", "9", "2")}], lambda _: 1.0)
    facts = import_recording(made, tiny, tmp_path / "server")
    assert facts["clients"] == {"client-1": "2", "client-2": "9", "client-3": "10"}
