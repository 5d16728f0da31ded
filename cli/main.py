"""``vflens``: the commands, their flags and their help. Slow imports happen inside the commands that need them."""

from __future__ import annotations

import os

# One numeric thread per process, before NumPy loads: sums then have one order in every mode.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import sys

import typer

from cli import datasets, evidence, federation, plugins
from vfl.errors import VflensError

app = typer.Typer(
    name="vflens",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="What each party of a vertical federation can reconstruct from what it receives, and what a defence buys and costs.",
    epilog="Start with: make demo. Exit codes: 0 done, 1 failed, 2 configuration, 3 data, 4 alignment, 5 protocol, 6 state, "
    "7 access, 8 knowledge, 9 plug-in, 10 defence, 11 unavailable, 12 storage, 130 interrupted.",
)
app.add_typer(datasets.app, name="datasets")
federation.add_to(app)
evidence.add_to(app)
plugins.add_to(app)


def main() -> None:
    """Run the command line; every error is one sentence and its class's exit code."""
    try:
        app()
    except VflensError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("interrupted: what was computed so far is kept", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
