"""The parameters of every round of a horizontal run, from those before and the updates of its clients."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np

from vflens.errors import KnowledgeError
from vflens.models.whole import BOTTOM
from vflens.plugins.views.horizontal import Parameters
from vflens.plugins.views.reads import Log, read_only
from vflens.protocol.checks import check_origin, finite_tensors
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.protocol.horizontal.masked_update import check_masked, unmasked_mean
from vflens.types import Array, Phase, Point, Released

_START, _END = "start/", "end/"  # begin the names of ω_0 and ω_T among the server's own arrays


def owned(start: Parameters, end: Parameters) -> dict[str, Array]:
    """The server's own arrays, for attacks: the parameters before the first round, and after the last."""
    first = {_START + name: array for name, array in start.items()}
    return first | {_END + name: array for name, array in end.items()}


def parameters_of(
    federation: HorizontalAgreement, own: Mapping[str, Array], transcript: Log
) -> Callable[[int], Parameters]:
    """What gives ω_t by name, from the :func:`owned` arrays and the recorded updates; in SplitFed between its
    rounds the bottom model's alone, for no message holds the top models.

    It raises KnowledgeError where the transcript leaves out an update before round t.
    """

    def kept(prefix: str) -> Parameters:
        found = {n.removeprefix(prefix): a for n, a in own.items() if n.startswith(prefix)}
        return {name: read_only(array) for name, array in found.items()}

    def parameters(number: int) -> Parameters:
        if number == federation.epochs:
            return kept(_END)
        current = kept(_START)
        if number and federation.horizontal.is_split:
            current = {name: array for name, array in current.items() if name.startswith(BOTTOM)}
        updates = transcript.select(federation.sent, phases={Phase.TRAIN})
        rounds = groupby(updates, key=lambda released: released.exchange.round)
        for due in range(number):
            recorded, released = next(rounds, (None, None))
            if recorded != due or released is None:
                raise KnowledgeError(
                    f"the parameters of round {number} follow from all updates before it, and the transcript "
                    f"leaves out those of round {due}: set transcript.every = 1, or attack an earlier round"
                )
            current = averaged(federation, current, list(released))
        return current

    return parameters


def check_update(
    released: Released, client: str, federation: HorizontalAgreement, parameters: Parameters
) -> None:
    """Refuse ``released`` unless it is an update of ``parameters`` by ``client``, masked where that is due.

    Raises:
        KnowledgeError: it was withheld.
        ProtocolError: of another client, or of other names, shapes or numbers.
    """
    check_origin(released, client, federation.sent)
    if federation.sent is Point.MASKED_UPDATE:
        check_masked(released, parameters)
    else:
        finite_tensors(released, parameters, sent=parameters)


def averaged(
    federation: HorizontalAgreement, parameters: Parameters, updates: Sequence[Released]
) -> dict[str, Array]:
    """ω + Σ w_k Δ_k of a round's ``updates`` in name order, in float64, then in the precision of ω.

    A running variance that the noise of clients has made negative is 0.
    """
    return added(parameters, _terms(federation, parameters, sorted(updates, key=lambda u: u.sender)))


def added(parameters: Parameters, terms: Iterable[tuple[str, Array]]) -> dict[str, Array]:
    """``parameters`` and all ``terms`` by name, added in float64; running variances below 0 are 0."""
    totals = {name: value.astype(np.float64) for name, value in parameters.items()}
    for name, term in terms:
        totals[name] += term
    return {
        name: (np.maximum(total, 0) if name.endswith("running_var") else total).astype(parameters[name].dtype)
        for name, total in totals.items()
    }


def _terms(
    federation: HorizontalAgreement, parameters: Parameters, updates: Sequence[Released]
) -> Iterator[tuple[str, Array]]:
    """By name what is added to ``parameters``, float64: each update with its weight; of masked ones the sum,
    in which the weights are.
    """
    if federation.sent is Point.MASKED_UPDATE:
        yield from unmasked_mean(federation, updates, parameters).items()
        return
    weights = federation.in_round(updates[0].exchange.round).weights({update.sender for update in updates})
    for update in updates:
        for name in parameters:
            yield name, weights[update.sender] * update.tensor(name).astype(np.float64)
