"""How a party is, for its operator: read from its folder; it and its peers are asked whether they serve."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from vflens.config import MemberConfig, load_party
from vflens.errors import ConfigError, UnavailableError, VflensError, printable
from vflens.services.folder import is_held
from vflens.services.healthcheck import serves, serves_itself
from vflens.services.identity import counterpart, identity_of
from vflens.storage.json_file import json_object
from vflens.types import Document, Phase, Role

_TAIL_BYTES = 1 << 20  # of a log: its last lines


def status(config_file: Path) -> Document:
    """The status of the party of ``config_file``, of this machine; nothing is changed.

    ``state`` is "never started", "running", "killed", "finished", "interrupted" or "failed"; ``phase`` that
    of ``state.json``, or "alignment" before it; ``step`` the last training step received, of ``steps``; in a
    horizontal run they are rounds.

    Raises:
        ConfigError: no party's configuration.
    """
    config = load_party(config_file)
    folder, held = config.out, is_held(config.out)
    certificate = _certificate(config)
    usable = certificate is None or certificate["ends"] is not None
    noted, reached = _noted(folder / "status.json"), _noted(folder / "state.json")
    state = str(noted.get("state", "never started"))
    if state == "running" and not held:
        state = "killed"
    return {
        "party": config.party,
        "role": str(config.role),
        "run": config.run,
        "folder": str(folder),
        "state": state,
        "reason": str(noted.get("reason", "")),
        "serves": held and usable and serves_itself(config),
        "phase": str(reached.get("stage", "alignment")),
        "restarts": _count(reached.get("incarnation", 0)),
        "step": _last_step(folder),
        "steps": _steps(_noted(folder / "federation.json")),
        "peers": _peers(config) if held and usable else {},
        "last_error": _last_error(folder / "events.jsonl"),
        "certificate": certificate,
        "heads": noted.get("heads", {}),
    }


def check(found: Document, config_file: Path) -> None:
    """Raise what is wrong with the party of :func:`status`; waiting, running and finished are well.

    ``config_file`` is its configuration, which the command that starts it names.

    Raises:
        UnavailableError: no process runs, or it does not answer.
        VflensError: its run failed or was interrupted.
    """
    party = f"{found['role']} {found['party']!r}"
    command = shlex.join(["vflens", "serve", found["role"], "--config", str(config_file), "--resume"])
    match found["state"]:
        case "never started" | "killed" as state:
            look = "look at its log, then " if state == "killed" else ""
            raise UnavailableError(
                f"{party}: {state}, no process runs in {found['folder']}: {look}start it with: {command}"
            )
        case "running" if found["certificate"] and found["certificate"]["ends"] is None:
            problem = found["certificate"]["problem"]
            raise UnavailableError(
                f"{party} runs in {found['folder']}, new connections are refused: {problem}"
            )
        case "running" if not found["serves"]:
            raise UnavailableError(f"{party} runs in {found['folder']} but does not answer: look at its log")
        case "failed" | "interrupted" as state:
            raise VflensError(
                f"{party}: its run is {state} ({found['reason']}): mend that, then start it with: {command}"
            )


def words(found: Document) -> str:
    """:func:`status` for people."""
    restarts = found["restarts"]
    unit = "round" if found["role"] in (Role.CLIENT, Role.SERVER) else "step"
    step = "" if found["step"] is None else f", {unit} {found['step']} of {found['steps'] or '?'}"
    lines = [
        f"{found['role']} {found['party']}, run {found['run']}: {found['state']}"
        + (f" ({found['reason']})" if found["reason"] else ""),
        f"  phase: {found['phase']}{step}; restarts: {'?' if restarts is None else restarts}",
        *(
            f"  peer {name}: {'serves' if lives else 'does not answer'}"
            for name, lives in found["peers"].items()
        ),
        *([f"  last error: {found['last_error']}"] if found["last_error"] else []),
        *([f"  certificate: {c['problem'] or 'ends ' + c['ends']}"] if (c := found["certificate"]) else []),
    ]
    return "\n".join(map(printable, lines))


def _noted(file: Path) -> dict[str, Any]:
    """The object in ``file``; {} where it is absent or being written."""
    with suppress(OSError, ValueError):
        return json_object(file.read_text(encoding="utf-8"))
    return {}


def _peers(config: MemberConfig) -> dict[str, bool]:
    return {
        p.name: serves(p.address, config.limits, tls=counterpart(p.name, p.role, config))
        for p in config.peers
    }


def _last_lines(file: Path) -> Iterator[dict[str, Any]]:
    """The objects in the last whole lines of ``file``, the newest first."""
    try:
        with file.open("rb") as lines:
            lines.seek(max(0, lines.seek(0, 2) - _TAIL_BYTES))
            tail = lines.read().split(b"\n")[:-1]
    except OSError:
        return
    for line in reversed(tail):
        with suppress(ValueError):
            yield json_object(line)


def _last_step(folder: Path) -> int | None:
    """The last training step received, kept or left out by sampling; None before the first."""
    recorded = (
        _count(line.get("step"))
        for line in _last_lines(folder / "transcript" / "index.jsonl")
        if line.get("phase") == Phase.TRAIN
    )
    counts = _noted(folder / "transcript" / "left_out.json").values()
    left_out = (_count(counted[-1]) for counted in counts if isinstance(counted, list) and counted)
    steps = [next((step for step in recorded if step is not None), None), *left_out]
    return max((step for step in steps if step is not None), default=None)


def _steps(federation: dict[str, Any]) -> int | None:
    """The training steps of the run, unless it stops early, or its rounds; None before it is prepared."""
    if isinstance(rounds := federation.get("horizontal"), dict):
        return _count(rounds.get("rounds"))
    if not isinstance(training := federation.get("training"), dict):
        return None
    epochs, batch = _count(training.get("epochs")), _count(training.get("batch_size"))
    rows = _count(federation.get("train_rows"))
    return epochs * -(-rows // batch) if epochs and batch and rows else None


def _count(value: object) -> int | None:
    """``value`` if it is a count; None for what else a damaged file can hold."""
    return value if isinstance(value, int) and 0 <= value < 1 << 63 else None


def _last_error(events: Path) -> str:
    """The newest warning or error in the party's log, "" without any."""
    for event in _last_lines(events):
        if event.get("level") in ("warning", "error"):
            what = event.get("error") or event.get("reason") or ""
            return f"{event.get('timestamp', '')} {event.get('event', '')}: {what}"
    return ""


def _certificate(config: MemberConfig) -> dict[str, str | None] | None:
    """When the party's certificate "ends", None if it cannot be used, and its "problem", "" without one; None
    without ``[tls]``.
    """
    try:
        identity = identity_of(config)
    except ConfigError as error:
        return {"ends": None, "problem": str(error)}
    if identity is None:
        return None
    return {"ends": identity.files.ends.isoformat(), "problem": identity.warning()}
