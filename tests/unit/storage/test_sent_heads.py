"""``heads.json``: what parties write comes back, anything else is refused in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vflens.errors import StorageError
from vflens.storage.chain import Head
from vflens.storage.sent_heads import SentHeads, received_in, write_received
from vflens.types import Signature

HEAD = {"records": 3, "head": "ab" * 32}


def test_what_was_kept_is_read_again(tmp_path: Path) -> None:
    heads = {"transcript": Head(3, bytes(32)), "digests": Head(0, bytes(32))}
    sent = {
        "signed": SentHeads(heads, bytes(32), Signature("a certificate", "ab"), "cd" * 32),
        "earlier": SentHeads(heads),
    }
    write_received(tmp_path, sent)
    assert received_in(tmp_path) == sent
    assert (tmp_path / "heads.json").read_text() == json.dumps(
        json.loads((tmp_path / "heads.json").read_text())
    )


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ([], "p: give a table"),
        ({"nonce": 5}, r"p\.nonce: give a text \(got 5\)"),
        ({"nonce": None}, r"p\.nonce: give a text \(got null\)"),
        ({"nonce": "5"}, r"p\.nonce: 64 hexadecimal digits, or none, are due \(got '5'\)"),
        ({"federation": "AB" * 32}, r"p\.federation: 64 hexadecimal digits, or none, are due \(got 'AB.*"),
        ({"diary": HEAD}, r"p\.diary: .*"),
        ({"released": {"records": 3}}, r"p\.released\.head: it is missing"),
        ({"released": HEAD | {"records": -1}}, r"p\.released\.records: .* 0 or more \(got -1\)"),
        ({"released": HEAD | {"records": True}}, r"p\.released\.records: .* whole number \(got true\)"),
        ({"released": HEAD | {"head": ""}}, r"p\.released\.head: 64 hexadecimal digits are due \(got ''\)"),
        ({"signature": ["a"]}, r"p\.signature\.1: it is missing"),
        ({"signature": ["a", "xy"]}, "a signature is written in hexadecimal digits"),
    ],
)
def test_what_no_party_writes_is_refused_in_words(tmp_path: Path, sent: Any, words: str) -> None:
    file = tmp_path / "heads.json"
    file.write_text(json.dumps({"p": sent}))
    refused = rf"^{file} holds no heads that can be read \({words}\): bring it back as it was, or remove it$"
    with pytest.raises(StorageError, match=refused):
        received_in(tmp_path)
