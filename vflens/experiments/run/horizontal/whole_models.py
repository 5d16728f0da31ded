"""The models of a horizontal run, built as its clients will build them, and what they take."""

from collections.abc import Iterable

import numpy as np

from vflens.array import ScaledColumns
from vflens.config import MIB, ClientConfig
from vflens.config.compatibility import build_defenses
from vflens.errors import KnowledgeError
from vflens.models.part import Keys, Site
from vflens.models.whole import WholeModel
from vflens.plugins.attack import Attack
from vflens.plugins.chain import DefenseChain
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.protocol.model_size import memory
from vflens.types import Exchange, Owner, Phase, Role
from vflens.words import counted


def check_models(federation: HorizontalAgreement, clients: Iterable[ClientConfig]) -> None:
    """Build the whole model behind the defences of ``clients``; clients with the same defences need it once.

    Raises:
        ConfigError: a defence finds no layer; torch is missing.
    """
    for client in {(c.defenses, c.device): c for c in clients}.values():
        _check_model(federation, client)


def check_attacks(federation: HorizontalAgreement, attacks: Iterable[tuple[str, Attack]]) -> None:
    """Refuse attacks in the server, by name, that no client's model fits.

    Raises:
        KnowledgeError: names the attack and what the model lacks.
    """
    for name, attack in attacks:
        if type(attack).check_whole is Attack.check_whole:
            continue
        from vflens.attacks.helpers.gradients.whole import whole_network  # it imports torch

        try:
            network = federation.model.network()
            attack.check_whole(whole_network(network, federation.columns, federation.n_classes))
        except KnowledgeError as error:
            raise KnowledgeError(
                f"attack {name!r} would never run: {error}: train such a model, or leave it out"
            ) from None


def _check_model(federation: HorizontalAgreement, client: ClientConfig) -> None:
    columns, defenses = federation.columns, build_defenses(client)
    owner = Owner(client.party, ScaledColumns(np.zeros((0, len(columns)))), role=Role.CLIENT)
    chain = DefenseChain(lambda: owner, defenses, b"")
    site = Site(
        party=client.party,
        columns=columns,
        features=len(columns),
        classes=federation.n_classes,
        training=federation.training,
        keys=Keys.under(b""),
        wrap=chain.wrap(Exchange(federation.run, Phase.TRAIN, 0, 0)),
        device=client.device,
        received=federation.received_width,
        holds_bias=True,
    )
    WholeModel(federation.model, site)


def described(federation: HorizontalAgreement) -> str:
    """What the model takes, in words: parameters, an update, the memory of the client that needs most."""
    parameters = federation.part_size(federation.parties[0]).parameters
    most = max(memory(federation, client) for client in federation.parties)
    return (
        f"{counted(parameters, 'parameter', ',')}, an update of {update_bytes(federation) / MIB:.2g} MiB a "
        f"client and round; rows, model and a step take up to {most / MIB:.2g} MiB at a client, beside its "
        "libraries"
    )


def update_bytes(federation: HorizontalAgreement) -> int:
    """What the update of a client takes in a message."""
    number = 8 if federation.horizontal.secure_aggregation else federation.dtype.itemsize
    return federation.part_size(federation.parties[0]).parameters * number
