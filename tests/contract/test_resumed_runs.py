"""A party that dies in any phase after training and comes back: the run ends with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from accidents import Around, Faulty, Interrupted, Outcome, lose_reply, lose_request, rebuild
from laboratory import SYNTHETIC, THREE, close, estimates, federation, trained, transcripts
from oneprocess import LocalFederation
from thinned import first, thinned

from vflens.errors import UnavailableError
from vflens.member.suspicions import check_defenses
from vflens.protocol.acts import Act, Begin, Deliver, Disclose, Finished, Forward, Predict, Step, Submission
from vflens.storage import journal

TIMES = ("train_seconds", "predict_seconds", "steps_per_second")
LR: dict[str, Any] = {
    "data": {**SYNTHETIC, "rows": 300},  # 60 rows to predict: attacks at 50 and at 60
    "training": {"epochs": 2, "batch_size": 60, "learning_rate": 0.1},
    "defenses": [{"name": "gaussian_scores", "at": "coordinator"}],
    "attacks": [{"name": "half_star"}, {"name": "gradient_sign", "at": "passive"}],
    "disclose": [{"what": "parameters", "to": "active"}, {"what": "labels", "to": "passive", "rows": 20}],
}
SPLIT: dict[str, Any] = {
    "model": {"architecture": "mlp", "width": 4},
    "defenses": [{"name": "dp_gaussian", "at": "passive"}],
    "attacks": [],
    "disclose": [],
}
KINDS = {
    "lr": LR,
    "split": LR | SPLIT,
    "direct": LR | SPLIT | {"aggregator": "active"},
    "shares": LR
    | {
        "training": {**LR["training"], "optimizer": "sgd", "protection": "shares"},
        "parties": THREE,
        "attacks": [{"name": "half_star"}],
        "disclose": [{"what": "parameters", "to": "active"}],
    },
    "stopping": LR | {"training": {**LR["training"], "epochs": 30, "patience": 1, "tolerance": 10}},
}
Result = tuple[Outcome, dict[str, str], dict[str, list[str]]]


def result(local: LocalFederation, home: Path) -> Result:
    """Weights, transcripts, estimates, released rows, and all figures but times."""
    for member in local.members():
        check_defenses(member)
    close(local)
    files = sorted(home.glob("*/metrics.parquet"))
    released = {f.parent.name: journal.digest(f) for f in sorted(home.glob("*/released"))}
    figures = {
        f.parent.name: sorted(str(r) for r in pq.read_table(f).to_pylist() if r["metric"] not in TIMES)
        for f in files
    }
    return (trained(local), transcripts(home), estimates(home)), released, figures


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Result]:
    """What a run without any accident ends with, by kind."""
    found: dict[str, Result] = {}

    def of(kind: str) -> Result:
        if kind not in found:
            home = tmp_path_factory.mktemp(kind)
            local = federation(home, **KINDS[kind])
            rest_of(local)
            found[kind] = result(local, home)
        return found[kind]

    return of


class Dying(Around):
    """The callee is rebuilt before and after it answers ``act``: its reply is lost, and asked for again."""

    def __init__(self, inner: Any, act: type[Act[Any]], local: LocalFederation) -> None:
        super().__init__(inner)
        self.act, self.local, self.deaths = act, local, 0

    def submit(self, act: Act[Any]) -> Any:
        if not isinstance(act, self.act):
            return super().submit(act)
        for _ in range(2):
            rebuild(self.local, self.name)
            self.deaths += 1
            super().submit(act).result()
        rebuild(self.local, self.name)
        return super().submit(act)


def dying(local: LocalFederation, act: type[Act[Any]]) -> list[Dying]:
    """Put :class:`Dying` around every link; the fresh parties get the same links."""
    made = []
    for member in local.members():
        for name, link in member.links.items():
            member.links[name] = each = Dying(link, act, local)
            made.append(each)
    return made


CALLS = [
    *(("lr", act) for act in (Disclose, Deliver, Begin, Forward, Submission)),
    ("direct", Forward),
    ("split", Forward),
    ("shares", Disclose),
]


@pytest.mark.parametrize(("kind", "act"), thinned(CALLS), ids=lambda value: getattr(value, "__name__", value))
def test_a_callee_that_dies_around_each_answer(
    tmp_path: Path, undisturbed: Callable[[str], Result], kind: str, act: type[Act[Any]]
) -> None:
    local = federation(tmp_path, **KINDS[kind])
    local.coordinator.prepare()
    local.coordinator.train()
    links = dying(local, act)
    rest_of(local)
    assert sum(link.deaths for link in links)
    assert result(local, tmp_path) == undisturbed(kind)


class Cut(Around):
    """The caller dies before the request number ``left`` of kind ``act`` leaves, or when its reply comes."""

    def __init__(self, inner: Any, act: type[Act[Any]], left: int, *, late: bool) -> None:
        super().__init__(inner)
        self.act, self.left, self.late = act, left, late

    def submit(self, act: Act[Any]) -> Any:
        if isinstance(act, self.act):
            self.left -= 1
            if self.left == 0:
                if self.late:
                    super().submit(act).result()
                raise Interrupted
        return super().submit(act)


DEATHS = [
    ("lr", "active", "coordinator", Predict, 2),
    ("lr", "active", "passive", Submission, 2),
    ("lr", "active", "coordinator", Finished, 1),
    ("lr", "passive", "active", Submission, 1),
    ("split", "active", "coordinator", Predict, 2),
    ("direct", "active", "passive", Forward, 2),
    ("lr", "coordinator", "passive", Disclose, 2),
    ("lr", "coordinator", "active", Begin, 1),
]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("death", DEATHS, ids=lambda d: f"{d[0]}-{d[1]}-{d[3].__name__}")
def test_a_caller_that_dies_with_a_request_under_way(
    tmp_path: Path, undisturbed: Callable[[str], Result], death: tuple[Any, ...], late: bool
) -> None:
    kind, who, to, act, number = death
    local = federation(tmp_path, **KINDS[kind])
    local.coordinator.prepare()
    local.coordinator.train()
    links = local.parties[who].links
    links[to] = cut = Cut(links[to], act, number, late=late)
    with pytest.raises(Interrupted):
        rest_of(local)
    links[to] = cut.inner
    rebuild(local, who)
    rest_of(local)
    assert result(local, tmp_path) == undisturbed(kind)


LOST = [("lr", "coordinator", Predict), ("split", "coordinator", Predict), ("direct", "passive", Forward)]


@pytest.mark.parametrize("fault", [lose_request, lose_reply])
@pytest.mark.parametrize("number", first([1, 2]))
@pytest.mark.parametrize("lost", LOST, ids=lambda d: d[0])
def test_a_living_party_repeats_a_request_that_failed(
    tmp_path: Path, undisturbed: Callable[[str], Result], lost: tuple[Any, ...], number: int, fault: Any
) -> None:
    kind, to, act = lost
    local = federation(tmp_path, **KINDS[kind])
    local.coordinator.lead()
    links = local.active.links
    links[to] = Faulty(links[to], act, number, fault)
    with pytest.raises(UnavailableError, match=r"was lost$"):
        local.complete()
    local.complete()
    assert result(local, tmp_path) == undisturbed(kind)


def rest_of(local: LocalFederation) -> None:
    """The run from where it stands."""
    local.coordinator.lead()
    local.complete()


class Dead(Around):
    """The callee dies in training before it answers step ``at``; its caller reads that it is away."""

    def __init__(self, inner: Any, local: LocalFederation, at: int) -> None:
        super().__init__(inner)
        self.local, self.at = local, at

    def submit(self, act: Act[Any]) -> Any:
        if isinstance(act, Step) and act.exchange.step == self.at:
            self.at = -1
            rebuild(self.local, self.name)
            raise UnavailableError(f"party {self.name!r} is away")
        return super().submit(act)


LIVING = [
    ("lr", "coordinator", "passive", 3),
    ("lr", "coordinator", "active", 3),
    ("direct", "active", "passive", 3),
    *(("shares", "active", "a", number) for number in (0, 1, 6, 7, 16)),
    *(("shares", "active", "c", number) for number in (0, 2)),
    ("stopping", "coordinator", "passive", 8),  # it stops after step 7: the last gradient is lost
]


@pytest.mark.parametrize("death", thinned([(death,) for death in LIVING], 3), ids=lambda d: f"{d[0]}-{d[2]}")
def test_the_others_live_on_while_one_comes_back(
    tmp_path: Path, undisturbed: Callable[[str], Result], death: tuple[str, str, str, int]
) -> None:
    kind, caller, who, step = death
    local = federation(tmp_path, **KINDS[kind])
    links = local.parties[caller].links
    links[who] = Dead(links[who], local, step)
    with pytest.raises(UnavailableError, match="is away"):
        local.coordinator.lead()
    local.coordinator.rejoin()
    rest_of(local)
    assert result(local, tmp_path) == undisturbed(kind)
