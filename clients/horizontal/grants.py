"""What a client grants to its server beyond the rounds, and the rows that attacks are scored on."""

from collections.abc import Mapping

import numpy as np

from vflens.clients.candidates import Candidates, drawn_candidates
from vflens.clients.horizontal.local_run import LocalRun
from vflens.config import ClientConfig, Disclosure
from vflens.errors import ConfigError
from vflens.member.gate import ReleaseGate
from vflens.models.settings import Horizontal
from vflens.plugins.chain import DefenseChain
from vflens.plugins.views.horizontal import CANDIDATES
from vflens.protocol.checks import MODEL_VERSION
from vflens.protocol.horizontal.agreement import grant_number
from vflens.randomness import stream
from vflens.types import Array, Exchange, Phase, Point, Released
from vflens.words import counted

_POINTS = {
    "parameters": Point.PARAMETERS,
    "moments": Point.MOMENTS,
    "auxiliary": Point.AUXILIARY,
    "labels": Point.AUXILIARY,
    "embeddings": Point.EMBEDDING,
    "gradients": Point.GRADIENT,
    "candidates": Point.AUXILIARY,
}
_NO_ROWS = np.zeros(0, np.int32)


def check_grants(config: ClientConfig, training: int, horizontal: Horizontal) -> None:
    """Refuse grants of more rows than the ``training`` rows, or of parameters that are shared.

    Raises:
        ConfigError: names the client.
    """
    known, shown = _most(config, "auxiliary", "labels"), _most(config, "embeddings", "gradients")
    if known + shown > training:
        raise ConfigError(
            f"disclose at {config.party!r}: {counted(known, 'row')} with their truth and {shown} to attack "
            f"are more than its {counted(training, 'training row')}, grant fewer"
        )
    if not horizontal.private_bottom and any(d.what == "parameters" for d in config.disclose):
        raise ConfigError(
            f"disclose parameters at {config.party!r}: the server has all of them, leave it out"
        )


def _most(config: ClientConfig, *whats: str) -> int:
    return max((d.rows for d in config.disclose if d.what in whats), default=0)


class Grants:
    """The disclosures of the client of ``config`` in ``run``, whose draws follow from ``secret``.

    Its training rows are drawn in one order. The first have their truth granted, columns or labels; the next
    have their embeddings and gradients granted, and attacks on them are scored. Embeddings and gradients of
    the first are granted too: an attack may learn from pairs. They are those of a batch of training that
    holds all granted rows, in an exchange of its own: what ``chain`` does to a batch it does to them.

    Raises:
        ConfigError: more rows are granted than train, or parameters that are shared.
    """

    def __init__(self, config: ClientConfig, run: LocalRun, secret: bytes, chain: DefenseChain) -> None:
        self._config, self._run, self._chain = config, run, chain
        train = run.federation.rows_of(config.party, Phase.TRAIN)
        check_grants(config, len(train), run.federation.horizontal)
        order = stream(secret, "granted rows").permutation(train)
        known, shown = _most(config, "auxiliary", "labels"), _most(config, "embeddings", "gradients")
        self._order, self._known = order, known
        self.attacked: Array = np.sort(order[known : known + shown])
        self.candidates = drawn_candidates(
            _most(config, "candidates"),
            order[known + shown :],
            run.federation.rows_of(config.party, Phase.PREDICT),
            party=config.party,
            secret=secret,
        )

    @property
    def scored(self) -> tuple[Array, Candidates]:
        """The attacked rows, and the candidates."""
        return self.attacked, self.candidates

    def released(self, granted: Disclosure, gate: ReleaseGate) -> Released:
        """What is ``granted``, as it leaves through ``gate``."""
        rows = self.rows(granted)
        point, exchange = _POINTS[granted.what], self._exchange(granted)
        return gate.release(point, exchange, rows, self._tensors(granted, rows))

    def _exchange(self, granted: Disclosure) -> Exchange:
        """The exchange of a disclosure, which keys its noise."""
        number = grant_number(granted.what, granted.rows)
        return Exchange(self._config.run, Phase.DISCLOSE, MODEL_VERSION, number)

    def rows(self, granted: Disclosure) -> Array:
        """The training rows int32 (n,) of a disclosure; of candidates the server is not to know them."""
        if granted.what in ("parameters", "moments", "candidates"):
            return _NO_ROWS
        if granted.what in ("auxiliary", "labels"):
            return np.sort(self._order[: granted.rows])
        return np.sort(self._order[: self._known + granted.rows])

    def _tensors(self, granted: Disclosure, rows: Array) -> Mapping[str, Array]:
        """The numbers of a disclosure of ``rows``, before defences."""
        run = self._run
        if granted.what == "parameters":
            return run.model.private()
        if granted.what in ("auxiliary", "labels", "candidates"):
            return self._truth(granted, rows)
        if granted.what == "moments":
            training = run.truth[run.federation.rows_of(self._config.party, Phase.TRAIN)]
            return {
                "mean": training.mean(axis=0),
                "covariance": np.atleast_2d(np.cov(training, rowvar=False)),
            }
        exchange = Exchange(self._config.run, Phase.TRAIN, run.federation.horizontal.rounds, 0)  # of no round
        x = self._chain.fold("on_batch", run.inputs[rows], exchange, rows)
        if granted.what == "embeddings":
            return {"embedding": run.model.embeddings(x, exchange)}
        y = self._chain.fold("on_batch_labels", run.soft_labels[rows], exchange, rows)
        return run.model.row_gradients(x, y, exchange)

    def _truth(self, granted: Disclosure, rows: Array) -> Mapping[str, Array]:
        """Numbers of the client's rows as they are."""
        run = self._run
        if granted.what == "candidates":
            places = self.candidates.rows
            return dict(zip(CANDIDATES, (run.truth[places], run.labels[places]), strict=True))
        return {"features": run.truth[rows]} if granted.what == "auxiliary" else {"labels": run.labels[rows]}
