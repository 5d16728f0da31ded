"""Public rows: other people's, held out of the run, in the active party's hands alone."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from laboratory import SYNTHETIC, deal, experiment, federation

from vflens.clients.public_rows import read_public
from vflens.clients.vertical.active import ActiveParty
from vflens.config import ActiveConfig, load_party
from vflens.datasets._resolve import dataset
from vflens.errors import ConfigError, DataError, KnowledgeError
from vflens.experiments.run.vertical.knowledge import check_granted
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.registry import Registry
from vflens.storage.journal import Messages
from vflens.tables.files import read_party_table
from vflens.types import ColumnInfo, Estimate, Knowledge, PartyInfo, Phase, Role, statuses

PUBLIC = {"data": {**SYNTHETIC, "public": 30}}


class Copier(Attack):
    """Reads nothing but public rows."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.PUBLIC})

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        found = np.tile(view.public().mean(axis=0), (len(view.rows), 1))
        return Estimate(view.target, view.rows, found, statuses(len(found)))


def _with_copier(monkeypatch: pytest.MonkeyPatch) -> None:
    get = Registry.get
    found = lambda registry, name: Copier if name == "copier" else get(registry, name)  # noqa: E731
    monkeypatch.setattr(Registry, "get", found)


def test_no_party_holds_a_public_row_and_each_row_is_somewhere(tmp_path: Path) -> None:
    files = deal(experiment(tmp_path, **PUBLIC), tmp_path)
    active = load_party(files["active"])
    assert isinstance(active, ActiveConfig)
    assert active.public is not None
    public = set(read_party_table(active.public).ids.tolist())
    run = set(read_party_table(active.data).ids.tolist())
    everything = set(dataset("synthetic", {k: v for k, v in SYNTHETIC.items() if k != "name"}).load().ids)
    assert len(public) == 30
    assert not public & run
    assert public | run == everything
    assert "public" not in files["passive"].read_text()
    assert not (tmp_path / "passive" / "public").exists()


def test_without_the_key_nothing_changes(tmp_path: Path) -> None:
    files = deal(experiment(tmp_path), tmp_path)
    assert "public" not in files["active"].read_text()


def test_an_attack_of_the_active_party_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_copier(monkeypatch)
    local = federation(tmp_path, **PUBLIC, attacks=[{"name": "copier"}], disclose=[])
    local.run()
    active = local.active
    assert isinstance(active, ActiveParty)
    own = active.adversary.own()
    table = dataset("synthetic", {k: v for k, v in SYNTHETIC.items() if k != "name"}).load()
    assert active.public is not None
    place = {i: n for n, i in enumerate(table.ids.tolist())}
    chosen = [place[i] for i in active.public.ids.tolist()]
    raw = table.features[chosen][:, -own["public/passive"].shape[1] :]
    low, high = (getattr(raw, f)(axis=0) for f in ("min", "max"))
    np.testing.assert_allclose(own["public/passive"], (raw - low) / (high - low), atol=1e-12)
    assert table.labels is not None
    assert (own["public labels"] == table.labels[chosen]).all()
    assert own["public/active"].shape == (30, 3)


def test_too_many_public_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.public = 89: the table has 90 rows"):
        deal(experiment(tmp_path, data={**SYNTHETIC, "public": 89}), tmp_path)


def test_a_row_of_the_run_is_no_public_row(tmp_path: Path) -> None:
    config = load_party(deal(experiment(tmp_path), tmp_path)["active"])
    assert isinstance(config, ActiveConfig)
    with pytest.raises(DataError, match="in data row 1 and 89 more: public rows are other people's"):
        read_public(config.data, read_party_table(config.data))


def test_an_attack_without_public_rows_is_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_copier(monkeypatch)
    what = experiment(tmp_path, attacks=[{"name": "copier"}], disclose=[])
    with pytest.raises(KnowledgeError, match=r"there are no public rows: set data\.public"):
        check_granted(what)
    check_granted(experiment(tmp_path, **PUBLIC, attacks=[{"name": "copier"}], disclose=[]))


def _view(needs: frozenset[Knowledge], **own: np.ndarray) -> AdversaryView:
    return AdversaryView(
        party="me",
        target="target",
        rows=np.arange(2, dtype=np.int32),
        n_classes=2,
        transcript=Messages([]),
        own=own,
        parties=[PartyInfo("me", Role.ACTIVE), PartyInfo("target", Role.PASSIVE, columns=(ColumnInfo("a"),))],
        needs=needs,
        phases=frozenset(Phase),
    )


def test_public_rows_are_declared_before_they_are_read() -> None:
    rows = {"public/target": np.ones((3, 1)), "public labels": np.arange(3)}
    with pytest.raises(KnowledgeError, match="without declaring"):
        _view(frozenset(), **rows).public()
    view = _view(frozenset({Knowledge.PUBLIC}), **rows)
    assert view.public().shape == (3, 1)
    assert view.own_public()[0].shape == (3, 0)
    with pytest.raises(KnowledgeError, match="no public rows"):
        _view(frozenset({Knowledge.PUBLIC})).public()
