"""How a party is, for its operator: read from its folder; it and its peers are asked whether they serve."""

import shlex
from pathlib import Path

from vflens.config import PartyConfig, load_party
from vflens.errors import ConfigError, UnavailableError, VflensError, printable
from vflens.protocol.roles import ROLES
from vflens.services.folder import is_held
from vflens.services.healthcheck import serves, serves_itself
from vflens.services.identity import counterpart, identity_of
from vflens.services.noted import count, last_error, last_step, noted, steps
from vflens.types import Document, Role


def status(config_file: Path) -> Document:
    """The status of the party of ``config_file``, of this machine; nothing is changed.

    ``state`` is "never started", "running", "killed", "finished", "interrupted" or "failed", "unknown" where
    ``status.json`` is damaged; ``phase`` that of ``state.json``, or "alignment" before it; ``step`` the last
    training step received, of ``steps``; in a horizontal run they are rounds.

    Raises:
        ConfigError: no party's configuration.
    """
    config = load_party(config_file)
    folder, held = config.out, is_held(config.out)
    certificate = _certificate(config)
    usable = certificate is None or certificate["ends"] is not None
    ending, reached = noted(folder / "status.json"), noted(folder / "state.json")
    unsaid = "unknown" if (folder / "status.json").exists() else "never started"
    state = str(ending.get("state", unsaid))
    if state == "running" and not held:
        state = "killed"
    return {
        "party": config.party,
        "role": str(config.role),
        "run": config.run,
        "folder": str(folder),
        "state": state,
        "reason": str(ending.get("reason", "")),
        "serves": held and usable and serves_itself(config),
        "phase": str(reached.get("stage", "alignment")),
        "restarts": count(noted(folder / "starts.json").get("restarts", 0)),
        "step": last_step(folder),
        "steps": steps(noted(folder / "federation.json")),
        "peers": _peers(config) if held and usable else {},
        "last_error": last_error(folder / "events.jsonl"),
        "certificate": certificate,
        "heads": ending.get("heads", {}),
    }


def check(facts: Document, config_file: Path) -> None:
    """Raise what is wrong with the party of :func:`status`; waiting, running and finished are well.

    ``config_file`` is its configuration, which the command that starts it names.

    Raises:
        UnavailableError: no process runs, or it does not answer.
        VflensError: its run failed or was interrupted.
    """
    party = f"{facts['role']} {facts['party']!r}"
    command = shlex.join(["vflens", "serve", facts["role"], "--config", str(config_file), "--resume"])
    match facts["state"]:
        case "never started" | "killed" as state:
            look = "look at its log, then " if state == "killed" else ""
            raise UnavailableError(
                f"{party}: {state}, no process runs in {facts['folder']}: {look}start it with: {command}"
            )
        case "unknown":
            raise VflensError(
                f"{party}: {facts['folder']}/status.json does not say how its run ended: bring it back as it "
                f"was, or go on with: {command}"
            )
        case "running" if facts["certificate"] and facts["certificate"]["ends"] is None:
            problem = facts["certificate"]["problem"]
            raise UnavailableError(
                f"{party} runs in {facts['folder']}, new connections are refused: {problem}"
            )
        case "running" if not facts["serves"]:
            raise UnavailableError(f"{party} runs in {facts['folder']} but does not answer: look at its log")
        case "failed" | "interrupted" as state:
            raise VflensError(
                f"{party}: its run is {state} ({facts['reason']}): mend that, then start it with: {command}"
            )


def words(facts: Document) -> str:
    """:func:`status` for people."""
    restarts = facts["restarts"]
    unit = ROLES[Role(facts["role"])].of_setting.unit
    over = facts["step"] is None or facts["phase"] == "finished"  # not every step is received by every party
    step = "" if over else f", {unit} {facts['step']} of {facts['steps'] or '?'}"
    lines = [
        f"{facts['role']} {facts['party']}, run {facts['run']}: {facts['state']}"
        + (f" ({facts['reason']})" if facts["reason"] else ""),
        f"  phase: {facts['phase']}{step}; restarts: {'?' if restarts is None else restarts}",
        *(
            f"  peer {name}: {'serves' if lives else 'does not answer'}"
            for name, lives in facts["peers"].items()
        ),
        *([f"  last error: {facts['last_error']}"] if facts["last_error"] else []),
        *([f"  certificate: {c['problem'] or 'ends ' + c['ends']}"] if (c := facts["certificate"]) else []),
    ]
    return "\n".join(map(printable, lines))


def _peers(config: PartyConfig) -> dict[str, bool]:
    return {
        p.name: bool(serves(p.address, config.limits, tls=counterpart(p.name, p.role, config)))
        for p in config.peers
    }


def _certificate(config: PartyConfig) -> dict[str, str | None] | None:
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
