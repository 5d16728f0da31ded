"""What the coordinator or a data party would refuse of a vertical experiment, found before the start."""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from vflens.array import ScaledColumns
from vflens.clients.membership import check_limits
from vflens.clients.vertical.spending import Spending
from vflens.config import MIB, ActiveConfig, Limits, PartyConfig, PassiveConfig
from vflens.config.compatibility import build_attacks, build_defenses, check_grants, known_claims
from vflens.errors import AlignmentError, ConfigError, StateError
from vflens.experiments.run.adaptive import adaptive_notes
from vflens.experiments.run.any_experiment import AnyPartiesExperiment
from vflens.experiments.run.vertical.experiment import Experiment
from vflens.experiments.run.vertical.knowledge import check_granted
from vflens.models.family import ModelFamily
from vflens.models.part import Keys, Site, plain
from vflens.models.settings import Training
from vflens.numerics.shares.response import largest_rate
from vflens.plugins.chain import DefenseChain
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.protocol.vertical.alignment import AT_ONCE, DIGEST_BYTES, HMAC_SECONDS, align, digests
from vflens.protocol.vertical.blinding import BLIND_SECONDS, HASH_SECONDS
from vflens.protocol.vertical.row_ids import Identities
from vflens.protocol.vertical.shares import SharedRun
from vflens.tables.files import read_party_table
from vflens.tables.table import Table
from vflens.types import AlignMode, Array, Document, Exchange, Owner, PartyInfo, Phase, Role
from vflens.words import counted


def check_vertical(
    experiment: AnyPartiesExperiment,
    scenarios: Sequence[Sequence[PartyConfig]],
    tables: Mapping[str, Table],
) -> Document:
    """See :data:`vflens.experiments.run.check.CHECKS`."""
    assert isinstance(experiment, Experiment)
    aligned = [[c for c in parties if isinstance(c, PassiveConfig | ActiveConfig)] for parties in scenarios]
    federation = _check_aligned(experiment, aligned, tables)
    mode = aligned[0][0].aligns_by
    notes: Document = {"alignment": alignment_cost(mode, [len(table.ids) for table in tables.values()])}
    if experiment.files:
        ids = {party: table.ids for party, table in tables.items()}
        notes["shared"] = shared_rows(ids, federation.rows, one_owner=experiment.lab)
    if federation.training.is_protected:
        notes["protection"] = number_bounds(SharedRun(federation))
    for scenario, parties in zip(experiment.scenarios, aligned, strict=True):
        for config in parties:
            notes |= clip_notes(scenario.name, config)
    notes |= adaptive_notes(experiment.scenarios, experiment.attacks, experiment.model, experiment.setting)
    return {**notes, "rows": f"{len(federation.train)} to train, {len(federation.predict)} to predict"}


def _check_aligned(
    experiment: Experiment,
    scenarios: Sequence[Sequence[PassiveConfig | ActiveConfig]],
    tables: Mapping[str, Table],
) -> VerticalAgreement:
    """Refuse what the coordinator or a data party would refuse; the federation as it will be aligned."""
    check_granted(experiment)
    data_parties = [config for parties in scenarios for config in parties]
    federation = agreed(experiment, tables)
    for config in data_parties:
        check_grants(config, len(federation.train))
    ids, mode = {p: len(t.ids) for p, t in tables.items()}, data_parties[0].aligns_by
    check_messages(federation, experiment.limits, ids, mode)
    for member in federation.parties:
        check_limits(federation, member, experiment.limits)
    for parties in scenarios:  # after the limits: it builds the networks
        check_modules(experiment.model, parties, tables)
    for config in data_parties:
        check_budget(config, federation)
    return federation


def check_numbers(experiment: AnyPartiesExperiment, tables: Mapping[str, Table]) -> None:
    """Refuse a protected training whose numbers have no room; ``tables`` are those that are dealt, if any.

    Raises:
        ConfigError: names the setting and the remedy.
        AlignmentError, DataError: the tables have no common row, or one is unusable.
    """
    assert isinstance(experiment, Experiment)
    own = {party: read_party_table(spec) for party, spec in experiment.files.items()}
    _ = SharedRun(agreed(experiment, {**own, **tables})).scale


def shared_rows(ids: Mapping[str, Array], shared: int, *, one_owner: bool) -> str:
    """How many of each party's rows are shared; to the owner of all also how many ids nearly match."""
    words = "; ".join(
        f"{party}: {shared:,} of {counted(len(own), 'row', ',')} are shared" for party, own in ids.items()
    )
    return words + _near(ids, shared) if one_owner else words


def _near(ids: Mapping[str, Array], shared: int) -> str:
    """How many ids of all parties would match beside those ``shared``, in words; "" of none."""
    more = len(set.intersection(*({_alike(i) for i in own.tolist()} for own in ids.values()))) - shared
    return f"; {more:,} more would match but for case, spaces, marks or leading zeros" if more > 0 else ""


def _alike(row_id: bytes) -> str:
    """``row_id`` without what people write in several ways, such as A-01 and a1, or 7 and 7.0."""
    text = unicodedata.normalize("NFKC", row_id.decode()).casefold()
    return re.sub(r"^0+(?=[^.])|(?<![\d.])0+(?=\d)|\.0+$", "", re.sub(r"[^\w.]|_", "", text))


def number_bounds(run: SharedRun) -> str:
    """What the integers of a protected training have room for, and which learning rate they stand for."""
    training, scale, rows = run.federation.training, run.scale, run.rows_in(0)
    most = "" if run.response.bounded else f" (at most {largest_rate(run.width, training.l2):g})"
    return (
        f"shares, {counted(rows, 'row')} in a batch of at most {scale.largest_batch}, "
        f"{counted(run.width, 'column')} with the bias, learning_rate = {training.learning_rate:g} taken as "
        f"{scale.effective_rate(rows):.6g}{most}, "
        f"largest sum 2^{math.log2(scale.largest_change(rows)):.2f} of 2^62"
    )


def clip_notes(scenario: str, config: PartyConfig) -> dict[str, str]:
    """A sentence per defence of gradients whose ``clip`` exceeds every gradient of logits, c − y: its L1 norm
    is at most 2.

    A top model multiplies it by its weights, so this is a note and no refusal.
    """
    if not isinstance(config, ActiveConfig):
        return {}
    clips = {name: getattr(d, "clip", 0.0) for name, d in build_defenses(config)}
    return {
        f"{scenario}, {config.party}, "
        f"{name}": f"clip = {clip:g} clips no gradient of logits, whose rows are at most 2 long; "
        f"level then counts {clip / 2:.3g} times what it does at that clip: set clip near it"
        for name, clip in clips.items()
        if clip > 2
    }


def agreed(experiment: Experiment, tables: Mapping[str, Table]) -> VerticalAgreement:
    """Align ``tables`` as the coordinator will; it gives the numbers of training and prediction rows, not the
    rows.

    Raises:
        AlignmentError: no common row, contradicting splits, or no row left to train or to predict.
    """
    identities = {p: Identities(digests(t.ids, b"known to all"), t.split) for p, t in tables.items()}
    try:
        aligned = align(identities, experiment.predict_share, np.random.default_rng(0))
    except AlignmentError as error:
        ids = {party: table.ids for party, table in tables.items()}
        none = experiment.lab and not set.intersection(*(set(own.tolist()) for own in ids.values()))
        raise AlignmentError(f"{error}{_near(ids, 0) if none else ''}") from error
    return VerticalAgreement(
        run=experiment.name,
        parties=tuple(
            PartyInfo(
                party,
                role,
                columns=tables[party].columns,
                n_classes=tables[party].n_classes,
                label=tables[party].label,
            )
            for party, role in experiment.roles().items()
            if party in experiment.data_parties
        ),
        rows=len(aligned.train) + len(aligned.predict),
        train=aligned.train,
        predict=aligned.predict,
        training=experiment.training,
        lab=experiment.lab,
        model=experiment.model,
        aggregator=experiment.aggregator,
    )


def check_budget(config: PassiveConfig | ActiveConfig, federation: VerticalAgreement) -> None:
    """Refuse a run that releases a row of this party more often than its budget covers.

    Raises:
        ConfigError: names both.
    """
    spending = Spending(config, partial(known_claims, config), federation)
    try:
        spending.check_releases(Phase.TRAIN, federation.training.epochs)
        spending.check_releases(Phase.PREDICT, 1)
    except StateError as error:
        raise ConfigError(str(error)) from None


def alignment_cost(mode: AlignMode, ids: Sequence[int]) -> str:
    """What the alignment of parties with so many ``ids`` costs, in words; of one party alone, what it costs
    that party.
    """
    total = sum(ids)
    if mode == "hmac":
        return f"hmac, about {total * HMAC_SECONDS:.1f} s of one core for {counted(total, 'id')}"
    seconds = total * (HASH_SECONDS + len(ids) * BLIND_SECONDS)
    more = "" if len(ids) > 1 else f", and {BLIND_SECONDS * 1e3:.2g} ms for each id of the others"
    return f"psi, about {seconds:.1f} s of one core for {counted(total, 'id')}{more}"


def check_messages(
    federation: VerticalAgreement, limits: Limits, ids: Mapping[str, int], mode: AlignMode
) -> None:
    """Refuse a limit below the largest message of alignment and training, or fewer ``ids`` than the parties
    have.

    Raises:
        ConfigError: names the message and its size, or the number of ids.
    """
    if (total := sum(ids.values())) > limits.max_ids:
        raise ConfigError(
            f"limits.max_ids = {limits.max_ids}: the data parties have {counted(total, 'id')}, raise it"
        )
    batch = min(federation.training.batch_size, len(federation.train))
    width = max(federation.combined_width, *federation.widths.values())
    most = min(AT_ONCE[mode], max(ids.values()))
    taken = {
        f"{counted(most, 'row id')} in one message": (most * (DIGEST_BYTES + 1), ""),
        f"the order of {counted(federation.rows, 'row')}": (8 * federation.rows, ""),
    }
    what = f"the embeddings of {counted(batch, 'row')} (training.batch_size)"
    taken[what] = (batch * (4 + width * federation.dtype.itemsize), ", or lower the batch")
    for what, (size, remedy) in taken.items():
        if size > limits.message_mib * MIB:
            raise ConfigError(
                f"limits.message_mib = {limits.message_mib}: {what} take {size / MIB:.1f} MiB, raise "
                f"it{remedy}"
            )


def check_modules(
    model: ModelFamily, configs: Sequence[PassiveConfig | ActiveConfig], tables: Mapping[str, Table]
) -> None:
    """Build what parties' defences wrap and attacks name of ``model``, as it will be built in the run.

    ``configs`` are those of the data parties, ``tables`` their tables.

    Raises:
        KnowledgeError: an attack names a layer that its target's model does not have.
        ConfigError: it does not fit the columns, embeddings do not combine, or a defence finds no layer;
            torch is missing.
    """
    if "wrap_model" in model.unused_hooks:
        return
    active = next(c for c in configs if isinstance(c, ActiveConfig))
    classes = tables[active.party].n_classes
    peers = [tables[c.party].columns for c in configs if c is not active]
    received = model.combined_width([model.width_of(columns, classes) for columns in peers], classes)
    for config in configs:
        columns = tables[config.party].columns
        own = config.party, columns, len(columns), classes, Training(), Keys.under(b""), plain
        site = Site(*own, received=received, peers=peers)
        _check_wrapped(config, model.module(config.role, site), len(columns))
        if isinstance(config, PassiveConfig):
            for attack in build_attacks(active).values():
                attack.check(model.module(Role.PASSIVE, site))


def _check_wrapped(config: PassiveConfig | ActiveConfig, module: Any, columns: int) -> None:
    """Test that the defences of ``config`` can wrap ``module``, of a party with so many ``columns``."""
    owner = Owner(config.party, ScaledColumns(np.zeros((0, columns))), role=config.role)
    chain = DefenseChain(lambda: owner, build_defenses(config), b"")
    chain.wrap(Exchange(config.run, Phase.TRAIN, 0, 0))(module)
