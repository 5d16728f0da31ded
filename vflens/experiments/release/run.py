"""``vflens release``: a table under noise, its certificate and the certificate's page (FAR;
``vflens.table_noise``).
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vflens.errors import ConfigError
from vflens.experiments.release.columns import Block, ReleasePlan, blocks, plan_columns
from vflens.experiments.release.facts import Classifier, certificate_facts
from vflens.experiments.release.file import OwnersTable
from vflens.experiments.release.options import DROP_ROW, ReleaseOptions, mechanism_for
from vflens.experiments.release.page import render
from vflens.experiments.release.passes import (
    Noise,
    Scan,
    refuse_invisible,
    refuse_refuted,
    scan,
    signs,
    write,
)
from vflens.experiments.release.sink import replacing
from vflens.randomness import derive, secret_from_seed
from vflens.storage.arrow import as_shown, strings
from vflens.table_noise.mechanisms import Mechanism
from vflens.table_noise.preserving import check_preserved, preserving_noise
from vflens.tables.cells import suffix
from vflens.tables.exact_numbers import as_floats
from vflens.types import Array, Document, Progress

THETA, RHO = 1.0, 1e-2


@dataclass(frozen=True)
class Release:
    """The written files, and the certificate as in JSON."""

    table: Path
    certificate: Path
    page: Path
    facts: Document


def release(options: ReleaseOptions, progress: Progress) -> Release:
    """Release ``options.table`` as ``options.out``, with its certificate: all files or none.

    Raises:
        ConfigError: contradicting options, or an existing output without ``--force``.
        DataError: the table cannot be released.
        StorageError: the output cannot be written.
    """
    page, certificate = (
        options.out.with_name(f"{options.out.name}.certificate.{s}") for s in ("html", "json")
    )
    outputs = [page, certificate, options.out]  # the table last: if it exists, so does its certificate
    _refuse_overwriting(options, outputs)
    plan = plan_columns(OwnersTable(options.table, options.described), options, progress)
    rows = partial(blocks, plan, drop_missing=options.missing in DROP_ROW, progress=progress)
    prepare = _correlated if options.mechanism == "correlated" else _independent
    prepared = prepare(options, plan, rows)
    diameter = options.span(len(plan.names))
    if diameter is not None:
        refuse_refuted(plan, prepared.scan, diameter)
    with replacing(outputs) as (page_file, certificate_file, table_file):
        noise = Noise(prepared.mechanism, _key(options, prepared.scan))
        effect = write(plan, prepared.rows(), prepared.scan, noise, table_file, excel_safe=options.excel_safe)
        classifier = prepared.check(table_file, progress) if prepared.check else None
        facts = certificate_facts(
            options,
            plan,
            scan=prepared.scan,
            mechanism=noise.mechanism,
            effect=effect,
            classifier=classifier,
        )
        facts["released"] = {"file": options.out.name, "sha256": _sha256(table_file)}
        text = json.dumps(facts, ensure_ascii=False, indent=2, allow_nan=False)
        certificate_file.write_text(text + "\n", "utf-8")
        page_file.write_text(render(facts, noise.mechanism, prepared.scan.moments, effect), "utf-8")
    return Release(options.out, certificate, page, facts)


@dataclass(frozen=True, eq=False)
class _Prepared:
    """A mechanism that fits the table; ``rows`` reads the table again, ``check`` the written file."""

    mechanism: Mechanism
    scan: Scan
    rows: Callable[[], Iterable[Block]]
    check: Callable[[Path, Progress], Classifier] | None = None


def _independent(
    options: ReleaseOptions, plan: ReleasePlan, rows: Callable[..., Iterable[Block]]
) -> _Prepared:
    found = scan(plan, rows(stage="reading"))
    mechanism = mechanism_for(options, found.moments, plan.names)
    refuse_invisible(plan, found, mechanism.finest())
    return _Prepared(mechanism, found, partial(rows, stage="writing"))


def _correlated(
    options: ReleaseOptions, plan: ReleasePlan, rows: Callable[..., Iterable[Block]]
) -> _Prepared:
    """Keeps the table in memory: the classifier needs all rows."""
    if options.verify:
        from vflens.verification.classifier import difference  # without CVXPY refused before minutes of work
    if len(plan.names) == 1:
        raise ConfigError(
            f"--mechanism correlated on the one column {plan.names[0]!r} leaves no room for noise: choose "
            "another mechanism"
        )
    theta = THETA if options.theta is None else options.theta
    rho = RHO if options.rho is None else options.rho
    m = float(options.m or 0.0)
    held = list(rows(stage="reading"))
    found = scan(plan, held)
    refuse_invisible(plan, found, np.full(len(plan.names), abs(m) ** 0.5))
    y, positive = signs(found.labels, np.concatenate([_text(b.kept[str(plan.label)]) for b in held]))
    x = np.concatenate([b.features for b in held])
    with _solving("its columns are too unlike in scale: rescale them"):
        mechanism, solution = preserving_noise(x, y, theta=theta, rho=rho, m=m)
    verified = difference(solution, x, y, theta=theta, rho=rho) if options.verify else None

    def check(written: Path, progress: Progress) -> Classifier:
        names = as_shown(strings(plan.names)).to_pylist() if options.excel_safe else plan.names
        released = _features(OwnersTable(written), names, progress)
        with _solving(f"the noise drowns it: choose a smaller m than {m:g}"):
            found = check_preserved(released, y, mechanism, solution, theta=theta, rho=rho)
        return Classifier(found, theta, rho, positive, verified=verified)

    return _Prepared(mechanism, found, lambda: held, check)


@contextmanager
def _solving(remedy: str) -> Iterator[None]:
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise ConfigError(f"the classifier of the table cannot be computed in float64; {remedy}") from error


def _features(file: OwnersTable, names: Sequence[str], progress: Progress) -> Array:
    """The released numbers, read back from the file, (q, p)."""
    read = file.blocks(names, (), "checking", progress)
    return np.concatenate([np.column_stack([as_floats(block[n]) for n in names]) for block in read])


def _text(column: Any) -> Array:
    return np.array(column.cast("string").to_pylist(), dtype=np.str_)


def _refuse_overwriting(options: ReleaseOptions, outputs: Sequence[Path]) -> None:
    if suffix(options.out) == ".parquet" and options.excel_safe:
        raise ConfigError(f"excel_safe: no spreadsheet runs what {options.out} holds, leave it out")
    if options.out.resolve() == options.table.resolve():
        raise ConfigError(f"--out {options.out} is the table itself: name another file")
    folder = next((o for o in outputs if o.is_dir()), None)
    if folder is not None:
        raise ConfigError(f"{folder} is a folder: name another --out")
    existing = next((o for o in outputs if o.exists()), None)
    if existing is not None and not options.force:
        raise ConfigError(f"{existing} exists: name another --out, or give --force to replace it")


def _key(options: ReleaseOptions, scan: Scan) -> bytes:
    """The key of the noise: random, or from seed, numbers and options together.

    So one seed never gives two releases the same noise in different sizes; their difference would reveal it.
    """
    if options.seed is None:
        return secrets.token_bytes(32)
    return derive(secret_from_seed(options.seed, "release"), "release", scan.digest.hex(), *options.as_key())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
