"""Parties that serve after the run: requests by others, and an end on a signal."""

from __future__ import annotations

import json
import signal
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commandline import Refused, Run
from processes import (
    Federation,
    assert_finished,
    change,
    dealt,
    eventually,
)

from vflens.config import Limits
from vflens.errors import AccessError
from vflens.protocol.acts import Forward, Predict
from vflens.storage import journal
from vflens.types import Exchange, Phase
from vflens.wire.grpc_link import GrpcLink


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """A federation that serves predictions, for tests that change nothing of it."""
    with dealt(tmp_path_factory.mktemp("serving"), after="serve") as federation:
        federation.start()
        eventually(lambda: "serving predictions" in federation.said("coordinator"))
        yield federation


class TestServing:
    def test_predictions_are_served_until_stopped(
        self, vflens: Run, refused: Refused, tmp_path: Path
    ) -> None:
        with dealt(tmp_path, after="serve") as federation:
            federation.start()
            eventually(lambda: "serving predictions" in federation.said("coordinator"))
            config = str(federation.config("active"))
            answers = json.loads(vflens("predict", "--config", config, "--rows", "0-2,5", "--json").out)
            assert [a["row"] for a in answers] == [0, 1, 2, 5]
            assert all(abs(sum(a["scores"].values()) - 1) < 1e-9 for a in answers)
            again = vflens("predict", "--config", config, "--rows", "0-2,5", "--json").out
            assert json.loads(again) == answers
            text = refused(13, "predict", "--config", config, "--rows", "99")
            assert text == "party 'active': --rows '99': there are 18 prediction rows, counted from 0"
            file = federation.home / "active/data.parquet"
            table = pq.read_table(file)
            pq.write_table(table.take(list(range(len(table)))[::-1]), file)  # other ids at the same rows
            again = vflens("predict", "--config", config, "--rows", "0-2,5", "--json").out
            assert json.loads(again) == answers  # the party knows its own ids
            self.needs_the_token_alone(vflens, refused, federation, answers)
            federation.processes["coordinator"].send_signal(signal.SIGINT)
            assert_finished(federation)
            text = refused(11, "predict", "--config", config)
            assert text.startswith("party 'active' does not run in ")
            assert "its run there is finished: start it" in text
            (federation.home / "active/status.json").unlink()
            text = refused(11, "predict", "--config", config)
            assert text.startswith("party 'active' cannot be reached (")

    def needs_the_token_alone(
        self, vflens: Run, refused: Refused, federation: Federation, answers: list[dict[str, Any]]
    ) -> None:
        """Ask as an operator who has no file of the party's."""
        settings = tomllib.loads(federation.config("active").read_text())
        token = federation.home / "token"
        token.write_text(settings["operator_token"] + "\n")
        command = ("predict", "--to", settings["address"], "--token-file", str(token), "--rows", "0-2,5")
        token.chmod(0o644)
        assert refused(2, *command).endswith(f"(mode 644): chmod 600 {token}")
        token.chmod(0o600)
        assert json.loads(vflens(*command, "--json").out) == answers
        token.write_text("another-token-that-nobody-has-given")
        assert "its token is another" in refused(13, *command)

    def test_an_earlier_run_is_not_asked_for_predictions(
        self, vflens: Run, refused: Refused, tmp_path: Path
    ) -> None:
        """The party that answers at its address has other rows; of the one that was killed nobody said how it
        ended.
        """
        with dealt(tmp_path, after="serve") as federation:
            federation.start()
            eventually(lambda: "serving predictions" in federation.said("coordinator"))
            federation.kill()
            federation.start()
            eventually(lambda: federation.said("coordinator").count("serving predictions") == 2)
            assert vflens("predict", "--config", federation.config("active"), "--rows", "0").code == 0
            earlier = federation.home / "active/earlier-1"
            text = refused(11, "predict", "--config", earlier / "config.toml")
            assert f"does not run in {earlier}, its run there is interrupted: " in text

    def test_nobody_goes_behind_the_score_gate(self, serving: Federation) -> None:
        settings = tomllib.loads(serving.config("active").read_text())
        assert {peer["name"] for peer in settings["peers"]} == {"coordinator", "passive"}
        for peer in settings["peers"]:
            link = GrpcLink(
                peer["name"], peer["address"], caller="active", token=peer["token"], limits=Limits()
            )
            row = next(iter(journal.read(serving.home / "coordinator/transcript"))).rows[:1]
            act = Forward(Exchange("tiny/run", Phase.PREDICT, 1, 7), row)
            words = (
                f"active 'active' may not ask {peer['role']} '{peer['name']}' to Forward: "
                "only the coordinator may"
            )
            with pytest.raises(AccessError, match=f"^party '{peer['name']}': {words}$"):
                link.call(act)
            link.close()

    def test_a_model_version_of_ones_own_draws_no_fresh_noise(self, serving: Federation) -> None:
        """An active party that calls itself version 2 would else average a defence away."""
        from vflens.errors import ProtocolError
        from vflens.types import Point, Released

        own = next(
            r
            for r in journal.read(serving.home / "coordinator/transcript")
            if r.sender == "active" and r.exchange.phase is Phase.PREDICT
        )
        peer = next(
            p
            for p in tomllib.loads(serving.config("active").read_text())["peers"]
            if p["role"] == "coordinator"
        )
        link = GrpcLink(peer["name"], peer["address"], caller="active", token=peer["token"], limits=Limits())
        again = Released(
            "active",
            Exchange("tiny/run", Phase.PREDICT, 2, 0),
            Point.EMBEDDING,
            own.rows,
            tensors=own.tensors,
        )
        with pytest.raises(
            ProtocolError, match=r"^party 'coordinator': model version 2 does not exist: ask for version 1$"
        ):
            link.call(Predict(again))
        link.close()

    def test_a_socket_in_use(
        self, serving: Federation, vflens: Run, refused: Refused, tmp_path: Path
    ) -> None:
        """GRPC would remove the live server's socket and take its place."""
        config = tomllib.loads(serving.config("passive").read_text())
        other = tmp_path / "other.toml"
        other.write_text(serving.config("passive").read_text())
        change(
            other,
            out=str(tmp_path / "elsewhere"),
            data=config["data"] | {"file": str(serving.home / "passive/data.parquet")},
        )
        assert refused(2, "serve", "passive", "--config", other) == (
            f"address '{config['address']}' is in use: choose another path, or stop who uses it"
        )
        assert vflens("predict", "--config", serving.config("active")).code == 0
