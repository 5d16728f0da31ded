"""Who may ask whom in a vertical run.

In particular the active party cannot reach a passive party's forward pass and so avoid the coordinator's
score gate, unless all are configured so (:data:`DIRECT_ACCESS`).
"""

from vflens.protocol.access import Access, pairs
from vflens.protocol.acts import (
    Begin,
    Deliver,
    Describe,
    Disclose,
    Epoch,
    Finished,
    Forward,
    Predict,
    Prepare,
    Query,
    Rejoin,
    Step,
    Stop,
    Submission,
    Train,
)
from vflens.protocol.mask_acts import Deal, Seed
from vflens.protocol.vertical.row_ids import Blind, Identify, Salt
from vflens.types import Role

_DATA = {Role.PASSIVE, Role.ACTIVE}
_TO_DATA = pairs({Role.COORDINATOR}, _DATA)
_NOBODY = pairs(set(), set())

#: The coordinator aggregates.
ACCESS: Access = {
    Describe: _TO_DATA,
    Salt: _TO_DATA,
    Identify: _TO_DATA,
    Blind: _TO_DATA,
    Prepare: _TO_DATA,
    Rejoin: _TO_DATA,
    Step: _TO_DATA,
    Train: _NOBODY,
    Epoch: _NOBODY,
    Seed: _NOBODY,
    Deal: _NOBODY,
    Disclose: _TO_DATA,
    Deliver: _TO_DATA,
    Begin: _TO_DATA,
    Forward: pairs({Role.COORDINATOR}, {Role.PASSIVE}),
    Stop: _TO_DATA,
    Predict: pairs({Role.ACTIVE}, {Role.COORDINATOR}),
    Finished: pairs(_DATA, {Role.COORDINATOR}),
    Submission: frozenset({(Role.ACTIVE, Role.PASSIVE), (Role.PASSIVE, Role.ACTIVE)}),
    Query: pairs({Role.OPERATOR}, {Role.ACTIVE}),
}

#: The differences if the active party aggregates: only it asks for embeddings, in training and prediction.
DIRECT_ACCESS: Access = {
    **ACCESS,
    Step: pairs({Role.ACTIVE}, {Role.PASSIVE}),
    Train: pairs({Role.COORDINATOR}, {Role.ACTIVE}),
    Epoch: pairs({Role.ACTIVE}, {Role.COORDINATOR}),
    Forward: pairs({Role.ACTIVE}, {Role.PASSIVE}),
    Predict: _NOBODY,
}

#: The differences in protected training: the active party leads it, and the coordinator deals masks.
SHARES_ACCESS: Access = {
    **ACCESS,
    Step: pairs({Role.ACTIVE}, {Role.PASSIVE}),
    Train: pairs({Role.COORDINATOR}, {Role.ACTIVE}),
    Epoch: pairs({Role.ACTIVE}, {Role.COORDINATOR}),
    Seed: _TO_DATA,
    Deal: pairs({Role.ACTIVE}, {Role.COORDINATOR}),
}
