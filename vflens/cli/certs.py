"""``vflens certs``: the certificates of parties and operators."""

from pathlib import Path
from typing import Annotated

import typer

from vflens.cli.output import Json, emit, note
from vflens.types import Document

app = typer.Typer(no_args_is_help=True, help="The certificates with which parties prove who they are.")
_Place = Annotated[
    Path, typer.Argument(help="a party's configuration with a table tls, or a folder for an operator's files")
]
_Federation = Annotated[
    str | None, typer.Option(help="the federation's name; default: that of the run, in lower case")
]


@app.command()
def init(
    places: Annotated[
        list[Path],
        typer.Argument(help="parties' configurations with a table tls, or a folder for an operator's files"),
    ],
    federation: _Federation = None,
    out: Annotated[
        Path | None, typer.Option(help="write the next certificate of the present key to this file")
    ] = None,
    json: Json = False,
) -> None:
    """Draw a key and a self-signed certificate, into the files that the table tls names.

    Those given together trust each other. Otherwise send the certificate, which is public, to the operators
    of all peers. Keys never leave their machine.

    Example: vflens certs init passive.toml active.toml coordinator.toml
    """
    from vflens.services.certificates.make import init as init_certificates

    made = init_certificates(places, federation, out)
    emit(json, made, lambda: "\n".join(map(_shown, made)))


@app.command()
def request(place: _Place, federation: _Federation = None, json: Json = False) -> None:
    """Write a request for a certificate, for an authority to sign; the key is drawn where there is none.

    Example: vflens certs request passive.toml
    """
    from vflens.services.certificates.make import make_request

    file = str(make_request(place, federation))
    emit(json, {"request": file}, lambda: f"{file}: send it to the authority")


@app.command()
def sign(
    requests: Annotated[list[Path], typer.Argument(help="files of vflens certs request")],
    authority: Annotated[
        Path, typer.Option(help="folder of authority.pem and authority.key; both are drawn if missing")
    ],
    json: Json = False,
) -> None:
    """Sign requests as an authority: each certificate stands beside its request, as .pem.

    Send back the certificate and authority.pem; authority.key stays.

    Example: vflens certs sign passive.csr active.csr --authority our-authority
    """
    from vflens.services.certificates.sign import sign as sign_certificates

    signed = sign_certificates(requests, authority)
    emit(json, signed, lambda: "\n".join(map(_shown, signed)))


@app.command()
def trust(
    place: _Place,
    files: Annotated[list[Path], typer.Argument(help="certificates of peers, or of an authority")],
    json: Json = False,
) -> None:
    """Trust certificates of peers, or an authority's: compare the fingerprints with their owners first.

    To trust one no longer, remove its file from the folder `tls.trust`; a running party notices.

    Example: vflens certs trust passive.toml active.pem coordinator.pem
    """
    from vflens.services.certificates.trust import trust as trust_certificates

    added = trust_certificates(place, files)
    emit(json, added, lambda: "\n".join(map(_shown, added)))


@app.command()
def show(
    place: Annotated[Path, typer.Argument(help="as for init, or a certificate (.pem)")], json: Json = False
) -> None:
    """Show whom certificates name, their dates and fingerprints: the own one, then those that are trusted.

    Example: vflens certs show passive.toml
    """
    from vflens.services.certificates.read import show as show_certificates

    found = show_certificates(place)
    emit(json, found, lambda: "\n".join(map(_shown, found)))


@app.command()
def check(
    config: Annotated[Path, typer.Argument(help="a party's configuration with a table tls")],
    json: Json = False,
) -> None:
    """Check the own certificate, and try it on every peer that runs.

    Ends with code 7 if a peer refuses or is refused, with code 11 if one does not run.

    Example: vflens certs check passive.toml
    """
    from vflens.config import load_party
    from vflens.errors import AccessError, UnavailableError
    from vflens.services.certificates.read import check as check_certificates
    from vflens.services.identity import certificate_warning

    found = check_certificates(config)
    if warning := certificate_warning(load_party(config)):
        note(warning)
    emit(json, found, lambda: "\n".join(f"{f['peer']} at {f['address']}: {f['state']}" for f in found))
    refused = next((f["reason"] for f in found if f["state"] == "refused"), None)
    if refused is not None:
        raise AccessError(refused)
    absent = ", ".join(f["peer"] for f in found if f["state"] == "absent")
    if absent:
        raise UnavailableError(f"no answer from {absent}: start what is missing, then check again")


def _shown(certificate: Document) -> str:
    named = f"{certificate['role']} {certificate['party']!r} of federation {certificate['federation']!r}"
    return (
        f"{certificate['file']}: {named if certificate['party'] else certificate['kind']} "
        f"({certificate['kind']}), until {certificate['ends']}\n"
        f"  fingerprint {certificate['fingerprint']}"
    )
