"""What a leader told parties of one another: public keys of masks, and numbers of rows."""

from pathlib import Path

from vflens.experiments.results.record import RecordedRun
from vflens.experiments.verify_log.finding import Found
from vflens.experiments.verify_log.words import Word, word
from vflens.member.signer import key_statement

#: Facts of a member, by their names: what they are called, and what another value would do.
_FACTS = {
    "mask_key": ("key of masks", "could take masks off"),
    "train_rows": ("number of training rows", "could change the weights of updates"),
}


def compare_keys(run: RecordedRun, trust: Path | None, found: Found) -> None:
    """Compare the members in ``federation.json`` of each party with what their owners have there.

    A party takes no federation that gives it another key than its own. A key that its owner signed shows who
    put another in its place.

    Raises:
        ConfigError: ``trust`` cannot be used.
    """
    for folder in run.parties:
        for info in folder.federation.parties:
            statement = key_statement(run.name, info.mask_key, folder.federation.nonce)
            if word(info.name, statement, info.signature, trust) is Word.FORGED:
                problem = f"its key of masks of {info.name!r} is not the one that {info.name!r} signed"
                found.damaged(folder.name, "federation.json", problem)
    for fact, (called, effect) in _FACTS.items():
        held = {
            p.name: {info.name: getattr(info, fact) for info in p.federation.parties} for p in run.parties
        }
        for party, values in held.items():
            for owner, value in values.items():
                if owner in held and value != held[owner].get(owner, value):
                    found.differs(
                        party,
                        "federation.json",
                        f"its {called} of {owner!r} is not that of {owner!r}: who put it there {effect}",
                    )
