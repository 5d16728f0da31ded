"""Data parties that are configured to break the protocol, and to say so."""

from collections.abc import Mapping
from dataclasses import replace

from vflens.clients.vertical.aligned_run import AlignedRun, LabelledRun
from vflens.clients.vertical.party import VerticalParty
from vflens.errors import ConfigError
from vflens.models.part import ActivePart, PassivePart, Site
from vflens.plugins.malicious import OptimizingAttack, Replaced, SendingAttack
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.randomness import Key
from vflens.recorded.vertical.view import view_of
from vflens.types import Array
from vflens.words import counted


def sending(
    party: VerticalParty[LabelledRun],
    part: ActivePart,
    federation: VerticalAgreement,
    public: Mapping[str, Array],
) -> ActivePart:
    """``part`` of ``party``; behind its sending attack, which learns from ``public`` rows, if it has one.

    Raises:
        ConfigError: several passive parties, whose embeddings do not arrive alone.
        KnowledgeError: the attack lacks public rows, or is made for another family of models.
    """
    found = next(((n, a) for n, a in party.adversary.attacks.items() if isinstance(a, SendingAttack)), None)
    if found is None:
        return part
    name, attack = found
    check_alone(name, len(federation.passive))
    view = view_of(
        attack,
        federation,
        party=party.name,
        target=federation.passive[0].name,
        rows=federation.train,
        transcript=party.adversary.received,
        own=public,
        every=party.config.transcript.every,
        device=party.config.device,
    )
    party.log.warning("malicious", attack=name, what="it sends another gradient than that of the loss")
    return Replaced(part, attack.sender(view, Key(party.secret, "sending", name)))


def optimizing(
    party: VerticalParty[AlignedRun[PassivePart]], site: Site, federation: VerticalAgreement
) -> Site:
    """``site`` of ``party``; with the optimiser of its attack, if it has one that brings it.

    Raises:
        KnowledgeError: the federation trains another model than a split network.
    """
    found = next(
        ((n, a) for n, a in party.adversary.attacks.items() if isinstance(a, OptimizingAttack)), None
    )
    if found is None:
        return site
    name, attack = found
    federation.model.network()  # no other family asks the site for its optimiser
    party.log.warning(
        "malicious", attack=name, what="its model learns with another optimiser than was agreed"
    )
    return replace(site, optimize=attack.optimizer)


def check_alone(attack: str, passive: int) -> None:
    """Refuse a sending attack beside several passive parties.

    Raises:
        ConfigError: names the attack.
    """
    if passive > 1:
        raise ConfigError(
            f"attack {attack!r} sends one party's gradient, there are {counted(passive, 'passive party')}: "
            "leave one"
        )
