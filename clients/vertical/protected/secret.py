"""The secret of a party's masks: it follows from the party's own secret, and is another one in each run."""

from vflens.member.member import Member
from vflens.member.start_nonce import start_nonce
from vflens.protocol.mask_acts import Seed, Seeded
from vflens.protocol.vertical.shares import mask_seed
from vflens.randomness import derive


def secret_of_masks(party: Member) -> bytes:
    """That of ``party``; its folder keeps the nonce of its start."""
    return derive(party.secret, "masks", start_nonce(party.folder, lab=party.config.lab))


def seeded(party: Member, act: Seed) -> Seeded:
    """The seed of its shares of masks, for the dealer."""
    party.check_run(act.run)
    return Seeded(mask_seed(secret_of_masks(party), act.run))
