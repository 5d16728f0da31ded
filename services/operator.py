"""The operator of an active party: asks the running process for scores, with its own token only.

The owner of a client reads them in its folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vflens.clients.horizontal.predictions import own_predictions
from vflens.config import OPERATOR, ClientConfig, Limits, load_party
from vflens.config.secrets import EXAMPLE
from vflens.errors import ConfigError, UnavailableError
from vflens.protocol.acts import Answers, Query
from vflens.services.folder import state_of
from vflens.services.identity import counterpart
from vflens.storage.private import exposure
from vflens.storage.regular import read_text
from vflens.types import Role
from vflens.wire.channel import check_address
from vflens.wire.grpc_link import GrpcLink

if TYPE_CHECKING:
    from vflens.wire.tls.counterpart import Counterpart


def ask(
    address: str,
    token_file: Path,
    rows: str,
    *,
    insecure: bool = False,
    tls: Counterpart | None = None,
) -> list[dict[str, Any]]:
    """Scores of prediction ``rows`` ("all", or numbers and ranges counted from 0) from the active party at
    ``address``.

    Args:
        address: "host:port" or "unix:PATH", seen from the current folder.
        token_file: holds only the party's ``operator_token``.
        rows: the rows to ask for.
        insecure: allow an address other than loopback without TLS.
        tls: from :func:`operator_tls`; None: without TLS.

    Raises:
        ConfigError: the address or the rows are wrong, or other users can open the file.
        UnavailableError: the party does not run.
        StateError: it does not predict yet.
    """
    check_address(address, insecure=insecure or tls is not None)
    token = _token(token_file)
    return _asked(GrpcLink(address, address, caller=OPERATOR, token=token, limits=Limits(), tls=tls), rows)


def operator_tls(folder: Path | None, party: str) -> Counterpart | None:
    """What an operator with its files in ``folder`` demands of the active party ``party``; None without
    ``folder``.

    Raises:
        ConfigError: the files are no operator's, or cannot be used.
    """
    if folder is None:
        return None
    from vflens.services.certificates.owner import operator_files
    from vflens.wire.tls.counterpart import Counterpart
    from vflens.wire.tls.identity import Identity

    return Counterpart(Identity(operator_files(folder), OPERATOR, Role.OPERATOR), party, Role.ACTIVE)


def ask_configured(config_file: Path, rows: str) -> list[dict[str, Any]]:
    """Ask as :func:`ask`, with address and token from the active party's own configuration; of a client those
    in its folder.

    Raises:
        ConfigError: also, not the configuration of a client, or of an active party with operator_token.
        UnavailableError: also, it runs in another folder.
    """
    config = load_party(config_file)
    if isinstance(config, ClientConfig):
        return _documents(own_predictions(config, rows))
    if config.operators_token is None:
        raise ConfigError(
            f"{config_file} is neither a client's configuration, nor an active party's with an "
            "operator_token: predictions are asked there"
        )
    state = state_of(config.out)
    if state not in ("running", ""):  # another run may answer at this address, for other rows
        raise UnavailableError(
            f"party {config.party!r} does not run in {config.out}, its run there is {state}: start it, or "
            "give the configuration in the folder of the one that runs"
        )
    link = GrpcLink(
        config.party,
        config.address,
        caller=OPERATOR,
        token=config.operators_token,
        limits=config.limits,
        tls=counterpart(config.party, config.role, config),
    )
    return _asked(link, rows)


def _token(file: Path) -> str:
    """The token in ``file``."""
    try:
        token, open_to = read_text(file).strip(), exposure(file, 0o600)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--token-file {file} cannot be read ({error}): check the path") from error
    if not token.isprintable() or not token.isascii() or not token or " " in token:
        raise ConfigError(
            f"--token-file {file} holds no token: write the party's operator_token alone into it"
        )
    if open_to and not token.startswith(EXAMPLE):
        raise ConfigError(f"--token-file {file} {open_to}")
    return token


def _asked(link: GrpcLink, rows: str) -> list[dict[str, Any]]:
    try:
        return _documents(link.call(Query(rows)))
    finally:
        link.close()


def _documents(answers: Answers) -> list[dict[str, Any]]:
    if answers.label:
        rows = zip(answers.numbers, answers.ids, answers.scores[:, 0].tolist(), strict=True)
        return [{"row": int(n), "id": i, "label": answers.label, "value": value} for n, i, value in rows]
    return [
        {
            "row": int(number),
            "id": row_id,
            "class": answers.classes[int(s.argmax())],
            "scores": dict(zip(answers.classes, s.tolist(), strict=True)),
        }
        for number, row_id, s in zip(answers.numbers, answers.ids, np.exp(answers.scores), strict=True)
    ]
