"""Whether to join, and with what: an audit's first sentence and its advice, by all attacks that ran."""

from __future__ import annotations

from collections.abc import Sequence

from vflens.errors import ConfigError
from vflens.experiments.audit.bench import FEW_COLUMNS, MOST_COLUMNS, Plan
from vflens.experiments.audit.defenses import ATTACKED_MODELS, Defended
from vflens.experiments.audit.models import EPOCHS
from vflens.experiments.audit.outcomes import AttackOutcome
from vflens.experiments.audit.record import AuditRecord
from vflens.experiments.audit.subject import AuditSubject
from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.words import deciding, number, percent, title, undecided
from vflens.models.settings import ON_SHARES
from vflens.score.service import MIN_ROWS
from vflens.words import counted

#: Seconds of a core: of the program; for 1,000 rows of all defences, each column of theirs, a simulated
#: model, each column of it, and the squared columns of a training that is read; of a cell of the table.
_START, _DEFENCES, _WIDER, _MODEL, _COLUMN, _READ, _CELL = 3.0, 13.0, 0.075, 0.12, 0.002, 0.0035, 5e-6
_BYTES, _LOADED = 24, 280  # of a cell while it is read; MiB of the program
_KEPT, _MOST_KEPT = 2800, 125_000  # bytes of a cell that models have, and cells
_MOST_MADE = 3  # columns of the file
_SECURE = "These figures hold only if nobody sees the messages of training."
_NAMED = 3  # defences in a sentence


def decision(record: AuditRecord) -> str:
    """The first sentences: who reads what, how exactly, beside a guess; then whether to join: as planned,
    with a defence, or not as planned, against what is wanted.
    """
    if record.is_given:
        return _releases(record)
    clear = record.training == "clear"
    if clear and not record.of_training:
        return "No advice yet: training is in the clear, and what it gives away was not measured."
    condition = "" if clear else ", if nobody sees the messages of training"
    if doubt := doubts(record):
        return f"No advice yet: {doubt}."
    planned = takes(record, record.worst_model)
    if record.is_kept:
        return f"{headline(record)}Join as planned{condition}: {planned}."
    for first in record.chosen:
        then = f"{takes(record, first)} then; {first.price}"
        return f"{headline(record)}Join with {first.title}{condition}: {then}."
    return (
        f"{headline(record)}Do not join as planned: {planned}, and no defence here stops an attack made for "
        "it at a cost that you allow."
    )


def _releases(record: AuditRecord) -> str:
    """Whether to join with what a given model releases, with less of it, or not."""
    condition = ", if nobody saw the messages of training"
    takes_of = {a.released: takes(record, a) for a in record.attacks}
    beyond = [a for a in record.attacks if _leaks(record, a)]
    if not beyond:
        most = max(record.attacks, key=lambda a: a.leak)
        return f"Join as planned{condition}: {takes_of[most.released]}."
    for a in record.attacks:
        if a not in beyond:
            others = "; ".join(f"from the {b.released} {takes_of[b.released]}" for b in beyond)
            return f"Join with the {a.released} alone released{condition}: {takes_of[a.released]}; {others}."
    least = min(beyond, key=lambda a: a.leak)
    return (
        f"Do not join as planned: from the {least.released} {takes_of[least.released]}, and no defence is "
        "measured on a model of another framework."
    )


def may_join(record: AuditRecord) -> bool:
    """Whether the party may join, as planned, with a defence or with less released."""
    some = record.is_given and not all(_leaks(record, a) for a in record.attacks)
    return record.is_kept or bool(record.fitting) or some


def doubts(record: AuditRecord) -> str:
    """Why the rows read decide nothing; "" where they do, or leak too much whatever is added."""
    if not record.is_kept:
        return ""
    columns = record.by_column
    if columns[0].rows < MIN_ROWS:
        return f"{counted(columns[0].rows, 'row')} attacked decide nothing, at least {MIN_ROWS} do"
    unread = [f for f in columns if not f.varies and f.deciding]
    if not unread:
        return ""
    names = ", ".join(f.subject for f in unread[:_NAMED]) + (", …" if len(unread) > _NAMED else "")
    hardly = f"hardly var{'y' if len(unread) > 1 else 'ies'} in the {counted(record.rows, 'row', ',')} read"
    most = max(unread, key=lambda f: f.rows_needed)
    needed = most.rows_needed
    if needed > record.table_rows:
        return f"{names} {hardly}{deciding(most)}"
    return f"{names} {hardly} of {record.table_rows:,}, {record.plan.stated('rows', needed)} would decide"


def headline(record: AuditRecord) -> str:
    """Who reads the most exposed column, how exactly, beside a guess; with a space behind it."""
    best = record.by_column[0]
    if best.state is State.FOUND:
        return f"{title(best)} "
    if any(f.state is State.UNDECIDED for f in record.by_column):
        return "Whether an attack that ran beats a guess is not decided. "
    return "No attack that ran finds a column better than a guess. "


def takes(record: AuditRecord, measured: AttackOutcome | Defended) -> str:
    """How much of its worst column a model gives away, or the error as ``measured``, beside what is wanted.

    Of several models the 95 % quantile, which holds in 19 of 20.
    """
    if (least := record.aims.least_error) is not None:
        error = number(measured.mse)
        return f"the strongest attack that ran errs by {error} (you ask for {number(least)})"
    leak, most = measured.leak or 0.0, record.aims.most_leak or 0.0
    alone = leak and measured.alike == 1.0
    which = f"the worst column, {measured.column}," if alone else "the worst column"
    several = isinstance(measured, Defended) or measured.models > 1
    where = "in 19 of 20 simulated models " if several else ""
    much = _beside(leak, most)
    return f"{where}{which} gives away {much} of what a guess leaves open (you allow {percent(most)})"


def protection(record: AuditRecord) -> str:
    """How training is protected, and what it gives away where it is not."""
    if record.training == "secure":
        return (
            f"{_SECURE} A federation of VFLens trains that way with training.protection = 'shares', "
            f"{ON_SHARES} only."
        )
    if not record.of_training:
        return (
            "Training is in the clear, and what it gives away was not measured: expect every training row of "
            "yours to be found."
        )
    columns = record.by_training
    count = sum(f.state is State.FOUND for f in columns)
    return (
        f"Training is in the clear: whoever reads its messages finds {count} of "
        f"{counted(len(columns), 'column')} better than a guess{undecided(columns)}."
    )


def recommendation(record: AuditRecord) -> str:
    """What helps and what it costs, from the measurements of all attacks that ran, those of training too."""
    clear = record.training == "clear"
    if clear and not record.of_training:
        return (
            "Nothing can be recommended while it was not measured what training in the clear gives away: "
            f"name at most {MOST_COLUMNS} columns, or state {record.plan.stated('training', 'secure')} if "
            "nobody sees its messages."
        )
    if doubts(record):
        advised = "Nothing can be recommended before more rows were read."
    elif record.is_kept:
        advised = f"No defence is needed against the attacks above, for {_aim(record)}."
    else:
        advised = _cheapest(record) if record.chosen else _none(record)
    return advised if clear else f"{_SECURE} {advised}"


def _leaks(record: AuditRecord, attack: AttackOutcome) -> bool:
    """Whether one attack alone takes more than is wanted."""
    return not record.aims.keeps(attack.mse, attack.leak)


def _none(record: AuditRecord) -> str:
    """Nothing fits: why, and what is left to do."""
    what = f"reaches {_aim(record)} at {_cost(record)}"
    if any(_leaks(record, a) for a in record.of_training):
        advised = (
            f"While training is in the clear no installed defence {what}: protect training "
            "(training.protection = 'shares'), share fewer columns, or stay out. What helps once training is "
            f"protected: state {record.plan.stated('training', 'secure')}."
        )
    else:
        advised = f"No installed defence {what}: share fewer columns, ask for less, or stay out."
    hiding = [d for d in record.defenses if d.keeps_to(record.aims)]
    return advised + _unpaid([d for d in hiding if not d.untested]) + untested(record)


def _unpaid(hiding: Sequence[Defended]) -> str:
    """The defences that hide enough and cost too much, or of which the cost is open."""
    each = "; ".join(f"{d.title}: {d.price}" for d in hiding[:_NAMED])
    return f" Enough is hidden by {each}." if each else ""


def untested(record: AuditRecord) -> str:
    """The defences of which nobody can say what they hide, since no attack that knows them ran."""
    names = dict.fromkeys(d.defense for d in record.defenses if d.untested and d.keeps_to(record.aims))
    return (
        f" Not tested, since no attack made for them had what it needs: {', '.join(names)}." if names else ""
    )


def _cheapest(record: AuditRecord) -> str:
    first, *others = record.chosen
    more = f" So do, at no less cost: {', '.join(d.title for d in others)}." if others else ""
    return (
        f"The cheapest installed defence with {_aim(record)} at {_cost(record)} is {first.title}, switched "
        f"on by {first.at}: error {number(first.mse)}, {first.price}; the federation still gains "
        f"{first.gain} over the other party alone.{_unbeaten(first)}{more}"
    )


def _unbeaten(defended: Defended) -> str:
    """Which attacks ran against a defence that none of them beats."""
    if defended.attack:
        return ""
    ran = f"Against it ran {', '.join(defended.tried)}, none better than a blind guess"
    return f" {ran}. Other attacks may do better."


def _aim(record: AuditRecord) -> str:
    if record.aims.most_leak is None:
        return f"an error of at least {number(record.aims.least_error)}"
    return f"a leak of at most {percent(record.aims.most_leak)} of a column"


def _cost(record: AuditRecord) -> str:
    return f"a cost of at most {number(record.aims.most_loss)} {measure(record)}"


def measure(record: AuditRecord) -> str:
    """What a defence's cost is measured in."""
    return next((d.cost.measure for d in record.defenses if d.cost), "accuracy")


def wanted(record: AuditRecord) -> str:
    """What the party asks for, in words."""
    return f"{_aim(record)}, at {_cost(record)}"


def _beside(share: float, allowed: float) -> str:
    """A share in per cent beside what is ``allowed``, also where it is over it and would print as that."""
    if share > allowed and percent(share) == percent(allowed):
        return f"up to just over {percent(allowed)}"
    return f"{'up to' if share > allowed else 'at most'} {percent(share)}"


def cost(subject: AuditSubject, plan: Plan) -> str:
    """How many columns, models, minutes of a core and MiB, about."""
    rows, columns = subject.x.shape
    kept = _KEPT * min(min(rows, plan.rows) * columns, _MOST_KEPT)
    mib = _LOADED + (rows * columns * _BYTES + kept) / 2**20
    minutes = counted(max(1, round(seconds(rows, columns, subject.classes, plan) / 60)), "minute")
    return (
        f"{counted(columns, 'column', ',')}, {counted(2 * plan.models, 'model', ',')}, about {minutes} of a "
        f"core and {mib:,.0f} MiB"
    )


def seconds(rows: int, columns: int, classes: int, plan: Plan) -> float:
    """How many of a core an audit of a table takes, about: docs/performance.md says how far off it was.

    As many logits of a training row as columns, or fewer, fit any columns: reading them ends at once.
    """
    read = min(ATTACKED_MODELS if columns <= FEW_COLUMNS else 1, plan.models)
    swept = plan.training == "clear" and columns < EPOCHS * classes and columns <= MOST_COLUMNS
    each = plan.models * (_MODEL + _COLUMN * columns) + swept * read * _READ * columns**2
    tried = _DEFENCES + _WIDER * columns
    return _START + min(rows, plan.rows) / 1000 * (tried + each) + _CELL * rows * columns


def check_advice(subject: AuditSubject, plan: Plan) -> None:
    """Refuse what cannot end with advice: training in the clear is measured up to 128 columns.

    Raises:
        ConfigError: says which columns make most.
    """
    columns = len(subject.columns)
    if plan.training != "clear" or columns <= MOST_COLUMNS:
        return
    widest = sorted(subject.whole, key=lambda whole: -len(whole[1]))[:_MOST_MADE]
    made = ", ".join(f"{name} makes {len(places):,}" for name, places in widest if len(places) > 1)
    fewer = "" if subject.bounds is None else "name fewer with --columns, or "  # a run has its own
    raise ConfigError(
        f"{subject.name} has {counted(columns, 'column', ',')}, training in the clear is measured up to "
        f"{MOST_COLUMNS}{f' ({made})' if made else ''}, and without it no advice follows: {fewer}state "
        f"{plan.stated('training', 'secure')} if nobody sees its messages; --yes goes on all the same"
    )
