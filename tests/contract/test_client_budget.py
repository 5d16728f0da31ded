"""The ε of a client: its updates, counted over rounds and restarts, refused beyond the budget."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from accidents import Fuse, Interrupted, rebuild
from horizontal import clients_of, deal, federation, server_of, table
from laboratory import close, figures
from oneprocess import LocalFederation

from vflens.cli.federation import _summary
from vflens.errors import ConfigError, StateError
from vflens.experiments.pages.report import write_report
from vflens.experiments.results.record import read_runs
from vflens.experiments.run.check import check
from vflens.numerics.gaussian_privacy import gaussian_epsilon
from vflens.protocol.acts import Step
from vflens.types import Exchange, Phase, Point, sealed

TABLES = {"a": table(30, 1), "b": table(17, 2)}
NO_ROWS = np.zeros(0, np.int32)
HALF = {"name": "dp_laplace", "level": 4.0}  # ε = ½ a round
BEYOND = (
    r"release 3 of an update of 'a' makes ε = 1\.5 at δ = 1e-05, limits\.epsilon is 1\.2: train for fewer "
    r"rounds, add noise, or raise it$"
)


def made(folder: Path, *, defenses: Any = (HALF,), **settings: Any) -> LocalFederation:
    settings.setdefault("horizontal", {"rounds": 3})
    return federation(deal(folder, TABLES, defenses=defenses, **settings))


def test_a_run_beyond_the_budget_is_refused_before_it_trains(tmp_path: Path) -> None:
    local = made(tmp_path, limits={"epsilon": 1.2})
    with pytest.raises(ConfigError, match=BEYOND):
        local.leader.lead()
    assert not list(local.leader.transcript)
    close(local)


def test_where_participants_are_drawn_the_round_beyond_the_budget_is_refused(tmp_path: Path) -> None:
    """Also after a restart, which counts the updates that left before it."""
    horizontal = {"rounds": 6, "participants": 1}
    local = made(tmp_path, limits={"epsilon": 1.2, "checkpoint_steps": 2}, horizontal=horizontal)
    server = server_of(local)
    server.prepare()
    with pytest.raises(StateError, match=r"release 3 of an update of '([ab])' makes ε = 1\.5") as refused:
        server.train()
    name = refused.value.args[0].split("'")[1]
    assert [r.sender for r in server.transcript.select(Point.UPDATE)].count(name) == 2
    rebuild(local, name)
    with pytest.raises(StateError, match=rf"release 3 of an update of '{name}'"):
        clients_of(local)[name].gate.take(Exchange("tiny/run", Phase.TRAIN, 5, 5), np.zeros(0, np.int32))
    close(local)


def test_a_round_that_is_repeated_after_a_restart_is_counted_once(tmp_path: Path) -> None:
    local = made(tmp_path, limits={"epsilon": 1.5})
    server = server_of(local)
    server.prepare()
    server.links["b"] = fuse = Fuse(server.links["b"], 2)  # "a" has answered this round, "b" has not
    with pytest.raises(Interrupted):
        server.train()
    server.links["b"] = fuse.inner
    rebuild(local, "a")
    server_of(local).rejoin()
    server_of(local).lead()
    local.complete()
    close(local)
    for name in TABLES:
        assert figures(tmp_path / name)["training_releases", "", ""] == 3
        assert figures(tmp_path / name)["training_epsilon", "", ""] == pytest.approx(1.5)


def test_other_parameters_for_a_round_get_no_second_update_with_its_noise(tmp_path: Path) -> None:
    """The difference of both updates would have no noise: after a restart the answer is no longer kept."""
    local = made(tmp_path)
    server = server_of(local)
    server.prepare()
    exchange = Exchange("tiny/run", Phase.TRAIN, 0, 0)
    sent = server.gate.release(Point.PARAMETERS, exchange, NO_ROWS, server.parameters)
    first = server.links["a"].call(Step(exchange, NO_ROWS, sent)).released
    rebuild(local, "a")
    others = replace(sent, tensors={n: sealed(t + 1) for n, t in (sent.tensors or {}).items()})
    with pytest.raises(StateError, match=r"^round 0 came before with other parameters: send the same, or"):
        server_of(local).links["a"].call(Step(exchange, NO_ROWS, others))
    again = server_of(local).links["a"].call(Step(exchange, NO_ROWS, sent)).released
    assert first is not None
    assert again is not None
    assert all(again.tensor(n).tobytes() == t.tobytes() for n, t in (first.tensors or {}).items())
    close(local)


def test_the_epsilon_of_each_client_stands_in_the_report(tmp_path: Path) -> None:
    """Gaussian noise of three rounds is one at √3 the distance; noise on labels costs each local epoch."""
    noise = [{"name": "dp_gaussian", "level": 20.0}, {"name": "grad_perturb", "epsilon": 0.5}]
    local = made(tmp_path, defenses=noise, horizontal={"rounds": 3, "local_epochs": 2})
    local.run()
    epsilon = gaussian_epsilon(math.sqrt(3) * 2 / 20.0, 1e-5)
    for name in TABLES:
        found = figures(tmp_path / name)
        assert found["training_epsilon", "", ""] == pytest.approx(epsilon, rel=1e-3)
        assert (found["label_releases", "", ""], found["label_epsilon", "", ""]) == (6, 3.0)
    page = write_report([tmp_path / p for p in TABLES], tmp_path / "report.html").read_text(encoding="utf-8")
    table_of = page.partition('<section id="privacy">')[2].partition("</section>")[0]
    assert table_of.count("<td>all rows of the client</td><td>3</td>") == 2
    assert table_of.count("<td>a label of a client&#39;s row</td><td>6</td>") == 2
    words = _summary(read_runs([tmp_path]), tmp_path / "report.html")
    assert f"a: ε = {epsilon:.3g} of all rows of the client at δ = 1e-05, 3 releases" in words


def test_local_steps_count_the_batches_that_can_hold_a_row(tmp_path: Path) -> None:
    """11 rows of "b" in batches of 4 are 3 a local epoch: of 5 steps two epochs can hold a row."""
    local = made(
        tmp_path,
        defenses=[{"name": "grad_perturb", "epsilon": 0.5}],
        training={"batch_size": 4},
        horizontal={"rounds": 3, "local_steps": 5},
    )
    local.run()
    assert figures(tmp_path / "b")["label_releases", "", ""] == 3 * 2
    assert figures(tmp_path / "a")["label_releases", "", ""] == 3 * 1  # 24 rows: 6 batches


def test_granted_gradients_cost_a_label_once_more(tmp_path: Path) -> None:
    granted = [{"what": what, "to": "server", "rows": 5} for what in ("gradients", "embeddings")]
    noise = [{"name": "grad_perturb", "epsilon": 0.5}]
    settings: dict[str, Any] = {"defenses": noise, "horizontal": {"rounds": 3, "local_epochs": 2}}
    made(tmp_path / "fits", **settings, disclose=granted, limits={"epsilon": 3.5}).run()
    found = figures(tmp_path / "fits" / "a")
    assert (found["label_releases", "", ""], found["label_epsilon", "", ""]) == (7, 3.5)
    made(tmp_path / "embeddings", **settings, disclose=granted[1:], limits={"epsilon": 3.0}).run()
    with pytest.raises(ConfigError, match=r"a label of 'a'"):
        made(tmp_path / "refused", **settings, disclose=granted, limits={"epsilon": 3.4}).run()


def test_noise_on_an_update_goes_with_mixed_rows_and_noise_on_labels_does_not(tmp_path: Path) -> None:
    """Its ε is that of all rows, however they were mixed."""
    mixing = {"name": "instahide"}
    close(made(tmp_path / "update", defenses=[mixing, HALF]))
    with pytest.raises(
        ConfigError, match=r"'instahide' at 'a' puts one row into several, and 'grad_perturb'"
    ):
        made(tmp_path / "label", defenses=[mixing, {"name": "grad_perturb"}])


def test_check_refuses_the_budget(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "name": "tiny", "data": {"name": "digits"}, "parties": {"clients": ["a", "b"]},
        "horizontal": {"rounds": 3}, "limits": {"epsilon": 1.2},
        "scenarios": [{"name": "run", "defenses": [{**HALF, "at": "a"}]}],
    }  # fmt: skip
    file = tmp_path / "experiment.toml"
    file.write_text(tomli_w.dumps(settings))
    with pytest.raises(ConfigError, match=BEYOND):
        check(file)
