"""The submissions that a target has scored: each set of rows once, also after a restart."""

import json
from hashlib import blake2b
from pathlib import Path

from vflens.errors import StateError, StorageError
from vflens.protocol.acts import Submission
from vflens.storage.files import write_whole
from vflens.storage.json_file import in_words, read_as


class Scored:
    """Rows of an adversary and the digest of their guesses, in ``file``.

    An adversary that was restarted repeats its last submission: the same guesses may come again, others may
    not.

    Raises:
        StorageError: the file cannot be read.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._digests = read_as(dict[str, str], file) if file.exists() else {}
        except (OSError, ValueError) as error:
            raise StorageError(
                f"{file} does not say what was scored ({in_words(error)}): use a folder that nobody changed"
            ) from error

    def note(self, submission: Submission) -> bool:
        """Take ``submission`` as the one of its rows; whether it is the first.

        Raises:
            StateError: these rows came before with other guesses.
            StorageError: the file cannot be written.
        """
        count, digest = len(submission.rows), _digest(submission)
        key = f"{submission.sender} {submission.metrics_of} {count} {submission.estimates}".rstrip()
        is_first = key not in self._digests
        if self._digests.setdefault(key, digest) != digest:
            raise StateError(
                f"the first {count} {submission.scored_set} rows were scored before: one submission carries "
                "all attacks on them"
            )
        if is_first:
            write_whole(self._file, json.dumps(self._digests).encode())
        return is_first


def _digest(submission: Submission) -> str:
    total = blake2b(submission.rows.tobytes(), digest_size=32)
    for guess in submission.guesses:
        total.update(f"{len(guess.attack)} {guess.attack}".encode())
        total.update(guess.values.tobytes() + guess.status.tobytes())
    return total.hexdigest()
