"""pip-compile with the hashes that the index states; otherwise it downloads the files of all systems."""

from __future__ import annotations

from pip._internal.models.link import Link
from piptools.repositories.pypi import PyPIRepository
from piptools.scripts.compile import cli

_download = PyPIRepository._get_file_hash


def _stated(repository: PyPIRepository, link: Link) -> str:
    return f"sha256:{link.hash}" if link.hash_name == "sha256" else _download(repository, link)


PyPIRepository._get_file_hash = _stated

if __name__ == "__main__":
    cli()
