"""What an audit will take, in words, before anything runs; and whether it can end with advice."""

from vflens.errors import ConfigError
from vflens.experiments.audit.bench import MOST_COLUMNS, Plan
from vflens.experiments.audit.subject import AuditSubject
from vflens.words import counted

#: Seconds of a core, measured on 10 models and 1,000 rows: of all, of each model, of a column of a model.
_BASE, _MODEL, _COLUMN = 10.0, 1.0, 0.05
_SHARES = 1.5  # of the work that training in the clear adds
_BYTES, _LOADED = 24, 200  # of a cell while it is read; MiB of the program
_NAMED = 3  # columns of the file


def cost(subject: AuditSubject, plan: Plan) -> str:
    """How many columns, models, minutes of a core and MiB, about."""
    rows, columns = subject.x.shape
    clear = plan.training == "clear" and columns <= MOST_COLUMNS
    part = min(rows, plan.rows) / 1000 * (1 + _SHARES * clear)
    seconds = _BASE + plan.models * (_MODEL + _COLUMN * columns) * part
    mib = _LOADED + rows * columns * _BYTES / 2**20
    minutes = counted(max(1, round(seconds / 60)), "minute")
    return (
        f"{counted(columns, 'column', ',')}, {counted(2 * plan.models, 'model', ',')}, about {minutes} of a "
        f"core and {mib:,.0f} MiB"
    )


def check_advice(subject: AuditSubject, plan: Plan) -> None:
    """Refuse what cannot end with advice: training in the clear is measured up to 128 columns.

    Raises:
        ConfigError: says which columns make most.
    """
    columns = len(subject.columns)
    if plan.training != "clear" or columns <= MOST_COLUMNS:
        return
    widest = sorted(subject.whole, key=lambda whole: -len(whole[1]))[:_NAMED]
    made = ", ".join(f"{name} makes {len(places):,}" for name, places in widest if len(places) > 1)
    raise ConfigError(
        f"{subject.name} has {columns:,} columns, training in the clear is measured up to {MOST_COLUMNS}"
        f"{f' ({made})' if made else ''}, and without it no advice follows: name fewer with --columns, or "
        "give --training secure if nobody sees its messages; --yes goes on all the same"
    )
