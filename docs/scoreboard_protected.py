"""What protected training leaves to attacks, by how predictions are released, beside the clear twin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from scoreboard_lines import table

from vflens.experiments.scoreboard.board import FAMILIES, Board, estimated
from vflens.experiments.scoreboard.grid import CLEAR, PROTECTED, RELEASES, UNDEFENDED
from vflens.experiments.scoreboard.lines import item, listed
from vflens.experiments.scoreboard.verdicts import CellResult
from vflens.words import counted

HEAD = """\
## Protected training

The federation trains softmax regression on additive shares: nobody sees a logit, a residual or a gradient.
That assumes parties that follow the protocol, and a dealer that colludes with nobody. The same attacks run on
its **clear twin**: the same rows, steps and grants, trained in the clear with one softmax in place of one
logistic regression for each class. Scores are open, or released under a defence, or the label is alone. The
tables give the relative error of attacks that beat a blind guess somewhere, there in **bold**; "–" is no
result.
"""
Found = Mapping[str, CellResult]


def protected_tables(boards: Sequence[Board]) -> Iterator[str]:
    """For each data set the verdict and the table; nothing where protected training was not run."""
    pairs = [(c, p) for c in boards for p in boards if (c.federation, p.federation) == (CLEAR, PROTECTED)]
    run = [(c, p) for c, p in pairs if c.data == p.data and c.found[UNDEFENDED] and p.found[UNDEFENDED]]
    yield from [HEAD] if run else []
    for clear, protected in run:
        yield f"### {protected.data}, trained in the clear and on shares\n"
        yield item(leaves(clear.found[UNDEFENDED], protected.found[UNDEFENDED]))
        for release in (r for r in RELEASES if r in protected.found):
            yield item(f"`{release}`: {released(protected.found[release])}")
        yield _table(clear, protected)


def leaves(clear: Found, protected: Found) -> str:
    """Which attacks beat a blind guess in the clear, which do so no longer on shares, and which do."""
    before, after = _beating(clear), _beating(protected)
    words = [f"In the clear {counted(len(before), 'attack')} beat a blind guess."]
    if ended := [name for name in before if name not in after]:
        words.append(f"On shares these do so no longer: {listed(ended)}.")
    found = f"these do: {_amounts(protected, after)}" if after else "none does"
    return " ".join([*words, f"On shares with open scores {found}."])


def released(protected: Found) -> str:
    """Which attacks beat a blind guess on shares where predictions are released under a defence."""
    after = _beating(protected)
    return (
        f"these beat a blind guess: {_amounts(protected, after)}."
        if after
        else "no attack beats a blind guess."
    )


def _beating(found: Found) -> list[str]:
    """The attacks that beat a blind guess, the most successful first."""
    return sorted((a for a, f in found.items() if f.beats_blind), key=lambda a: (found[a].mean, a))


def _amounts(found: Found, attacks: Sequence[str]) -> str:
    return ", ".join(f"`{a}` ({found[a].mean:.2f} ± {found[a].relative.half:.2f})" for a in attacks)


def _table(clear: Board, protected: Board) -> str:
    columns = {
        "clear, open scores": clear.found[UNDEFENDED],
        "shares, open scores": protected.found[UNDEFENDED],
    }
    columns |= {f"shares, {r}": protected.found[r] for r in RELEASES if r in protected.found}
    names = {attack for found in columns.values() for attack in found}
    beating = {attack for found in columns.values() for attack in _beating(found)}
    decided = {a for found in columns.values() for a, result in found.items() if result.is_decided}
    attacks = sorted(beating, key=lambda a: ([*FAMILIES].index(estimated(a)), a))
    lines = [_line(attack, [*columns.values()]) for attack in attacks]
    shown = [table(["attack", "estimates", *columns], lines)] if lines else []
    left = {"Beyond a blind guess in no column": decided - beating, "Not decided in any": names - decided}
    return "\n".join(
        [*shown, *(item(f"{says}: {listed(sorted(of))}.") for says, of in left.items() if of), ""]
    )


def _line(attack: str, columns: Sequence[Found]) -> list[str]:
    return [attack, FAMILIES[estimated(attack)], *(_cell(found.get(attack)) for found in columns)]


def _cell(found: CellResult | None) -> str:
    if found is None or not found.is_decided:
        return "–"
    text = f"{found.mean:.2f} ± {found.relative.half:.2f}"
    return f"**{text}**" if found.beats_blind else text
