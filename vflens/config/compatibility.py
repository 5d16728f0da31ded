"""Which defence can act where: a wrong place is refused before the start, with the reason."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from vflens.config import (
    ActiveConfig,
    ClientConfig,
    DataPartyConfig,
    Limits,
    PartyConfig,
    PassiveConfig,
    build_plugins,
)
from vflens.errors import ConfigError
from vflens.models.family import ModelFamily
from vflens.models.settings import Horizontal
from vflens.names import did_you_mean
from vflens.plugins.attack import Attack
from vflens.plugins.defense import INNER_HOOKS, Defense, NamedDefense
from vflens.plugins.malicious import SENT, breaks_protocol
from vflens.protocol.roles import SEATS
from vflens.registry import ATTACKS, DEFENSES
from vflens.types import Claim, Role
from vflens.words import counted

#: Hooks at which an ε is that of one row in one exchange.
_PER_ROW = frozenset({"on_batch_labels", "on_embedding", "on_gradient"})


def acts_among(hooks: frozenset[str], defense: Defense | type[Defense]) -> bool:
    """Whether ``defense`` acts where these ``hooks`` are; one that watches gradients needs some to arrive."""
    own = defense.hooks()
    return bool(own & hooks) and ("on_received" in hooks or "on_received" not in own)


def build_defenses(config: PartyConfig) -> list[NamedDefense]:
    """The configured defences of one party by name; each acts at one of its hooks.

    Raises:
        PluginError, ConfigError: unknown, wrongly set, or unable to act at this party.
    """
    available = config.hooks
    defenses: list[NamedDefense] = build_plugins(DEFENSES, config.defenses)
    for name, defense in defenses:
        no_top = {"wrap_model"} if defense.bottom_only and config.facts.only_top else set()
        if not acts_among(available - no_top, defense):
            way = "move it to another party, or disclose what it changes"
            raise ConfigError(
                f"defence {name!r} at {config.role} {config.party!r} would never act: "
                f"it changes {_listed(defense.hooks())}, this party handles {_listed(available)}: "
                f"{way if defense.hooks() else 'give it a hook'}"
            )
        if defense.needs_labels and isinstance(config, DataPartyConfig) and config.data.label_column is None:
            raise ConfigError(
                f"defence {name!r} at {config.party!r} reads labels of its owner: name its own "
                "data.label_column, or choose another setting"
            )
        if defense.together and not config.draws_together:
            raise ConfigError(
                f"defence {name!r} at {config.party!r} is drawn by all data parties together: give them the "
                'same alignment_key, beside align.mode = "psi"'
            )
    _check_hidden_labels(defenses, config.party)
    _check_mixing(defenses, config)
    return defenses


def known_claims(config: PartyConfig, hook: str) -> list[Claim]:
    """What the defences of ``config`` that override ``hook`` and need no fit guarantee there."""
    known = [d for _, d in build_defenses(config) if type(d).fit is Defense.fit]
    return [d.claim({}) for d in known if hook in d.hooks()]


def _check_mixing(defenses: Sequence[NamedDefense], config: PartyConfig) -> None:
    """Refuse a stated ε of a row behind a defence that puts one row into several: one that acts on inputs or
    labels, at the active party on the loss too, from which its gradients follow, or at the gate before it.
    """
    inner = frozenset(INNER_HOOKS)
    here = config.facts.hooks
    mixing = {n: d.hooks() for n, d in defenses if d.mixes_rows}
    inside = [n for n, hooks in mixing.items() if hooks & (inner - {"penalty"})]
    in_loss = [n for n, hooks in mixing.items() if "penalty" in hooks and config.facts.only_top]
    before: list[str] = []
    for name, defense in defenses:
        if name in mixing:
            before += [name] if mixing[name] - inner else []
            continue
        ahead = inside or ([] if defense.hooks() & inner else [*in_loss, *before])
        if ahead and _states_cost(defense, here):
            remedy = f"put {name!r} first, or use one of them" if ahead[0] in before else "use one of them"
            raise ConfigError(
                f"defence {ahead[0]!r} at {config.party!r} puts one row into several, and {name!r} "
                f"states an ε of each row: {remedy}"
            )


def _check_hidden_labels(defenses: Sequence[NamedDefense], party: str) -> None:
    """Refuse a defence that reads labels beside one that states an ε of each row's label in a batch."""
    reading = [name for name, defense in defenses if defense.needs_labels]
    for name, defense in defenses:
        if reading and _states_cost(defense, frozenset({"on_batch_labels"})):
            raise ConfigError(
                f"defence {reading[0]!r} at {party!r} reads the labels that {name!r} hides: use one of them"
            )


def _states_cost(defense: Defense, here: frozenset[str]) -> bool:
    """Whether it states an ε of each row at the hooks ``here`` before it is fitted."""
    if not defense.hooks() & _PER_ROW & here or type(defense).fit is not Defense.fit:
        return False
    claim = defense.claim({})
    return claim.epsilon is not None or claim.mu is not None


def check_together(parties: Mapping[str, Sequence[NamedDefense]]) -> None:
    """Refuse a defence that needs all data parties at some of them only, or with different settings.

    Args:
        parties: data party → its defences.

    Raises:
        ConfigError: names two parties that differ.
    """
    found = {p: [(n, d.model_dump()) for n, d in named if d.together] for p, named in parties.items()}
    for first, other in pairwise(found):
        for name, settings in (*found[first], *found[other]):
            if (name, settings) not in found[first] or (name, settings) not in found[other]:
                raise ConfigError(
                    f"defence {name!r} differs between {first!r} and {other!r}: the data parties draw it "
                    "together, so put it at each of them with the same settings"
                )


def check_fed(coordinator: str, defenses: Sequence[Defense], disclosing: Mapping[str, bool]) -> None:
    """Refuse a coordinator's defence that reads parameters which a passive party does not disclose to it.

    Args:
        coordinator: its name.
        defenses: its own.
        disclosing: passive party → whether it discloses its parameters to the coordinator.

    Raises:
        ConfigError: names the first party that does not.
    """
    missing = [name for name, does in sorted(disclosing.items()) if not does]
    if missing and any(d.needs_parameters for d in defenses):
        raise ConfigError(
            f"a defence of {coordinator!r} needs the parameters of {missing[0]!r}: let it disclose what = "
            f'"parameters" to = "{coordinator}"'
        )


def build_attacks(config: PartyConfig) -> dict[str, Attack]:
    """The configured attacks by name, without those on the folders of a finished run.

    Raises:
        PluginError, ConfigError: unknown, wrongly set, made for the other setting, or aimed at this party's
            own data: the active party's attacks estimate columns, a passive party's labels; one on
            folders of the finished run outside lab mode, or that breaks the protocol with colluders.
    """
    tables, afterwards = config.own_attacks, config.attacks_afterwards
    if not config.lab and afterwards:
        raise ConfigError(
            f"attack {afterwards[0].name!r} of {config.party!r} runs on folders of the finished run, and "
            "lab = false: nobody holds them all, leave it out and use vflens attack"
        )
    attacks: list[tuple[str, Attack]] = build_plugins(ATTACKS, tables)
    for (name, attack), table in zip(attacks, tables, strict=True):
        check_place(name, attack, *config.seat_of(table))
        if table.colluders and breaks_protocol(type(attack)):
            raise ConfigError(
                f"attack {name!r} at {config.party!r} breaks the protocol while its party trains, and with "
                "colluders it begins after the run: leave colluders out"
            )
    alone = [found for found, table in zip(attacks, tables, strict=True) if table not in afterwards]
    _check_sending(alone, config)
    return dict(alone)


def check_place(name: str, attack: Attack, role: Role, party: str) -> None:
    """Refuse ``attack``, called ``name`` at ``party``, which could never run in this ``role``.

    Raises:
        ConfigError: it is made for the other setting, aimed at what this party holds itself, or sends what a
            leader or an active party sends.
    """
    facts = SEATS[role]
    setting = facts.setting
    if setting not in attack.made_for():
        raise ConfigError(
            f"attack {name!r} at {role} {party!r} is made for "
            f"{' and '.join(sorted(attack.made_for()))} federations, this one is {setting}: leave it out"
        )
    if attack.estimates not in facts.estimates:
        raise ConfigError(f"attack {name!r} at {role} {party!r} estimates {_WORDS[attack.estimates]}")
    if breaks_protocol(type(attack)) and role not in SENT:
        raise ConfigError(
            f"attack {name!r} at {role} {party!r} sends what no {role} does: let it sit in another party, or "
            "leave it out"
        )


def _check_sending(attacks: Sequence[tuple[str, Attack]], config: PartyConfig) -> None:
    """Refuse `malicious` without an attack that breaks the protocol, and such an attack without it."""
    sending = [name for name, attack in attacks if breaks_protocol(type(attack))]
    if sending and not config.breaks_protocol:
        raise ConfigError(
            f"attack {sending[0]!r} at {config.party!r} sends {SENT[config.role]}: set malicious = true, or "
            "leave it out"
        )
    if config.breaks_protocol and len(sending) != 1:
        raise ConfigError(
            f"malicious = true at {config.party!r}: it takes exactly one attack that breaks the protocol, "
            "such as fsha in an active party, amc in a passive one or imprint in a server, there are "
            f"{len(sending)}"
        )


def check_device(config: DataPartyConfig) -> None:
    """Refuse an absent GPU; imports torch only if the configuration asks for one.

    Raises:
        ConfigError: there is none, or no torch.
    """
    if config.device != "cpu":
        from vflens.models.networks.device import placed

        placed(config.device)


def check_tolerance(stated: Iterable[str], names: Sequence[str], whose: str) -> None:
    """Refuse a column of ``scoring.tolerance`` that is none of ``names``, the columns of ``whose``.

    Raises:
        ConfigError: it names the nearest ones.
    """
    for column in stated:
        if column not in names:
            shown = ", ".join(names[:9]) + (", …" if len(names) > 9 else "")
            near = did_you_mean(column, names) or f": there are {shown}"
            raise ConfigError(f"scoring.tolerance.{column}: no column of {whose} is called {column!r}{near}")


def check_grants(config: PassiveConfig | ActiveConfig | ClientConfig, training: int) -> None:
    """Refuse to grant more rows than the ``training`` rows.

    Raises:
        ConfigError: names the disclosure.
    """
    for granted in config.disclose:
        due = granted.rows // 2 if granted.what == "candidates" else granted.rows
        if due > training:
            raise ConfigError(
                f"disclose {granted.what} rows = {granted.rows} at {config.party!r}: there are "
                f"{counted(training, 'training row')}, grant fewer"
            )


_WORDS = {
    "labels": "labels, which this party holds itself: let it sit in a passive party (at = its name)",
    "features": "columns: let it sit in the active party, a passive party's attacks estimate labels",
    "source": "whose row it is, which one label party leaves no doubt of: leave the attack out",
    "membership": "membership, which data parties know: let their operator try it (at = 'operator')",
}


def check_family(defenses: Iterable[NamedDefense], party: str, model: ModelFamily) -> None:
    """Refuse a defence that has nothing to act on in this family of models.

    Raises:
        ConfigError: names it.
    """
    for name, defense in defenses:
        if defense.needs_weight and not model.linear:
            raise ConfigError(
                f"defence {name!r} at {party!r} changes the weight matrix of softmax regression, "
                f"{model.title} has none: withhold_parameters acts on both"
            )
        if defense.needs_labels and model.label_kind == "number":
            raise ConfigError(
                f"defence {name!r} at {party!r} tells classes apart, {model.title} learns a number: leave it "
                "out, or train another model"
            )
        if defense.hooks() and defense.hooks() <= model.unused_hooks:
            raise ConfigError(
                f"defence {name!r} at {party!r} has nothing to act on, {model.title} has no "
                f"{_lacking(defense.hooks())}: leave it out, or train another model"
            )


def check_wrapped(defenses: Iterable[NamedDefense], party: str, horizontal: Horizontal) -> None:
    """Refuse a defence around a bottom model that is averaged: its keys would meet other weights in every
    round. Refuse one that watches gradients where none arrive.

    Raises:
        ConfigError: names it.
    """
    for name, defense in defenses:
        wraps = "wrap_model" in defense.hooks() and not defense.bottom_only
        if wraps and not horizontal.private_bottom:
            raise ConfigError(
                f"defence {name!r} at {party!r} stands around a bottom model of the client's own, "
                f"horizontal.method = {horizontal.method!r} has none: choose 'lg_fedavg'"
            )
        if "on_received" in defense.hooks() and horizontal.method != "splitfed":
            raise ConfigError(
                f"defence {name!r} at {party!r} watches gradients that arrive, horizontal.method = "
                f"{horizontal.method!r} sends none: choose 'splitfed'"
            )


#: What the hooks of defences act on that a family of models may lack.
_LACKED = {
    "on_scores": "log-probabilities",
    "wrap_model": "layers",
    "penalty": "layers",
    **dict.fromkeys(("on_labels", "on_batch_labels", "on_outputs"), "classes"),
}


def _lacking(hooks: frozenset[str]) -> str:
    return ", ".join(sorted({_LACKED.get(h, h.removeprefix("on_")) for h in hooks}))


def _listed(hooks: frozenset[str]) -> str:
    return ", ".join(sorted(h.removeprefix("on_") for h in hooks)) or "nothing"


def check_worst_error(model: ModelFamily, limits: Limits, passive: int) -> None:
    """Refuse a limit on what scores give away that nobody could count.

    Args:
        model: what is trained.
        limits: those of the passive parties.
        passive: how many there are.

    Raises:
        ValueError: names the setting and the remedy, for pydantic.
    """
    if limits.worst_error is not None and (passive > 1 or not model.closed_forms):
        raise ValueError(
            "limits.worst_error counts attacks on the scores of softmax regression with one passive party: "
            "leave the limit out, or train so"
        )
