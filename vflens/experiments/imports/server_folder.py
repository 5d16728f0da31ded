"""A run folder of a server that VFLens did not run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from vflens.config import ServerConfig, validate
from vflens.config.writing import toml_text
from vflens.errors import StorageError
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.randomness import secret_from_seed
from vflens.recorded.horizontal.parameters import owned
from vflens.storage.files import save_arrays
from vflens.storage.private import owner_only, write_private
from vflens.storage.transcript import Transcript
from vflens.types import Array, Released

Parameters = Mapping[str, Array]


def write_server(
    out: Path,
    federation: HorizontalAgreement,
    start: Parameters,
    updates: Sequence[Released],
    end: Parameters,
) -> None:
    """Write the folder ``out`` of a server that sent ``start``, received ``updates`` and ended with ``end``.

    Raises:
        ConfigError: no server can have these settings.
        StorageError: ``out`` exists or cannot be written.
    """
    if out.exists():
        raise StorageError(f"{out} exists: choose a new folder")
    settings = _settings(federation)
    validate(TypeAdapter(ServerConfig), {**settings, "out": str(out)}, "the imported run")
    with owner_only():
        out.mkdir(parents=True)
        write_private(out / "config.toml", toml_text(settings))
        _write_logs(out, federation, start, updates, end)


def _write_logs(
    out: Path,
    federation: HorizontalAgreement,
    start: Parameters,
    updates: Sequence[Released],
    end: Parameters,
) -> None:
    transcript = Transcript(out / "transcript", party="server")
    for update in updates:
        transcript.record(update)
    transcript.close()
    save_arrays(out / "own.npz", owned(start, end))
    federation.save(
        out, party="server", role="server", in_process=False, clipped=0, versions={}, transcript_digest=""
    )


def _settings(federation: HorizontalAgreement) -> dict[str, Any]:
    """The configuration of a server that would have had this run."""
    peers = [
        {
            "name": p.name,
            "role": "client",
            "address": f"unix:{p.name}",
            "token": secret_from_seed("0", p.name).hex(),
        }
        for p in federation.parties
    ]
    return {
        "party": "server",
        "role": "server",
        "run": federation.run,
        "address": "unix:server",
        "out": ".",
        "seed": secret_from_seed("0", "server").hex(),
        "peers": peers,
        "training": federation.training.model_dump(mode="json"),
        "model": federation.model.model_dump(mode="json"),
        "horizontal": federation.horizontal.model_dump(mode="json", exclude_none=True),
    }
