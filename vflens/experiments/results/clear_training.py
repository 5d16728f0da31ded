"""What training gives away or assumes, and the best defence, in words, the same in all pages."""

import math
from collections.abc import Iterator, Mapping, Sequence

from vflens.experiments.outcome.decide import HARDLY
from vflens.experiments.outcome.finding import Finding
from vflens.experiments.outcome.words import anew
from vflens.experiments.results.labels_membership import LabelResult, sites_told, up_to_map
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.results.titles import defenses, labels
from vflens.plugins.attack import installed_attack, up_to_renaming
from vflens.plugins.malicious import breaks_protocol
from vflens.protocol.acts import BATCHES
from vflens.storage.metrics import Name
from vflens.types import Phase, Role

PROTECTED = (
    "Trained on additive shares: nobody saw a logit, a residual or a gradient of a training row, if all "
    "parties follow the protocol (semi-honest) and the coordinator, who dealt the masks, colludes with nobody"
)
_NO_PAIR = ", and the active party does not collude with the first passive one"
_EXACT = 0.9995  # prints as 1.000
_ALARMS = "0.1"
_AS_CLUSTERS = ", each of its classes under the name that fits best"  # they have none of their own


def given_away(share: float, *, aided: bool = True) -> str:
    """What an attack finds that takes away ``share`` of the best blind guess's error in training rows, or
    explains it as R² up to an affine map, which a few known rows give; ``aided``: it needs these.
    """
    once = ", once a few are known" if aided else ""
    if share >= _EXACT:
        return f"every training row, exactly{once}"
    if share < HARDLY:
        return "the training rows hardly better than a blind guess"
    return f"{percent(share)} of what a blind guess leaves open in every training row{once}"


def percent(share: float) -> str:
    """A share of what a blind guess leaves open: "66 %", "99.9 %"."""
    return f"{100 * share:.0f} %" if share < 0.99 else f"{100 * share:.1f} %"


def found_in_training(leak: Finding, measure: str) -> str:
    """What ``leak``, of training in the clear, gives away, and by which ``measure``."""
    plugin = installed_attack(leak.attack)
    aided = plugin is None or plugin.estimates != "labels"
    return f"{leak.attack} finds {given_away(leak.taken, aided=aided)} ({measure})"


def explained_number(r2: float) -> str:
    """R² with what it is true of."""
    return f"R² = {r2:.3f}".replace(" 0.", " .") + " up to one affine map"


def reads_training(attack: str) -> bool:
    """Whether ``attack`` reads training traffic, or changes it; False if it is not installed."""
    plugin = installed_attack(attack)
    return plugin is not None and (Phase.TRAIN in plugin.phases or breaks_protocol(plugin))


def protected(run: RecordedRun) -> str:
    """What the protected training of ``run`` assumes; "" where it trained in the clear."""
    known = [p.federation for p in run.parties if p.federation.training.get("protection") == "shares"]
    if not known:
        return ""
    passive = [p for p in known[0].parties if p.role is Role.PASSIVE]
    return f"{PROTECTED}{_NO_PAIR if len(passive) > 1 else ''}."


def protections(runs: Sequence[RecordedRun]) -> str:
    """What the protected trainings among ``runs`` assume, each once, and what they cost."""
    return " ".join(filter(None, (_protected(runs), *_beside_twins(runs))))


def _protected(runs: Sequence[RecordedRun]) -> str:
    return " ".join(sorted({protected(run) for run in runs} - {""}))


def _beside_twins(runs: Sequence[RecordedRun]) -> list[str]:
    """A sentence of each model that was measured beside its clear twin, with its run if they differ."""
    distinct = {text: run.name for run in reversed(runs) if (text := _beside_twin(run.utility))}
    return [
        f"{f'In {name}, trained' if len(distinct) > 1 else 'Trained'} on shares the model {text}."
        for text, name in reversed(distinct.items())
    ]


def _beside_twin(utility: Mapping[str, float]) -> str:
    """What a model on shares is worth beside its clear twin; "" without one."""
    again = "trained in the clear with the same seed"
    if {Name.ACCURACY, Name.ACCURACY_CLEAR} <= utility.keys():
        shares, clear = (f"{100 * utility[n]:.1f} %" for n in (Name.ACCURACY, Name.ACCURACY_CLEAR))
        return f"names {shares} of prediction rows rightly, {again} {clear}"
    if {Name.R2, Name.RMSE, Name.R2_CLEAR, Name.RMSE_CLEAR} <= utility.keys():
        if math.isnan(utility[Name.R2]):
            shares, clear = f"RMSE = {utility[Name.RMSE]:.4g}", f"{utility[Name.RMSE_CLEAR]:.4g}"
            alike = ": all have one label, so that there is no R²"
        else:
            shares, alike = f"R² = {utility[Name.R2]:.3f} and RMSE = {utility[Name.RMSE]:.4g}", ""
            clear = f"{utility[Name.R2_CLEAR]:.3f} and {utility[Name.RMSE_CLEAR]:.4g}"
        return f"has {shares} (in the label's unit) on prediction rows, {again} {clear}{alike}"
    return ""


def how_trained(run: RecordedRun) -> str:
    """Where a leak of training came from: the beginning of its sentence."""
    return "From what was opened in training" if protected(run) else "Trained in the clear"


def assumption(runs: Sequence[RecordedRun]) -> str:
    """The threat model of the results, and what was found besides the largest leaks."""
    return _assumed(runs, protections(runs)) + found_besides(runs)


def threat_model(runs: Sequence[RecordedRun]) -> str:
    """How ``runs`` were trained, what that assumes, and which attacks read it; without a figure."""
    return _assumed(runs, _protected(runs))


def _assumed(runs: Sequence[RecordedRun], protection: str) -> str:
    found = {(r.attack, r.scored_set) for run in runs for r in run.results}
    reading = {a for a, rows in found if reads_training(a) or rows.startswith(BATCHES)}
    reading |= {attack for run in runs for attack, _ in run.explained}
    named = {r.attack for run in runs for r in run.labels} | {
        r.attack for run in runs for r in run.membership
    }
    reading |= set(filter(reads_training, named))
    what = "the attacks read predictions and disclosed parameters only."
    if not all(map(protected, runs)):
        assumed = f"Trained in the clear, and no attack of this run reads that: {what}"
        if reading:
            assumed = f"Training in the clear: {', '.join(sorted(reading))} read training traffic."
        return f"{protection} {assumed}".strip()
    if reading:
        what = f"{', '.join(sorted(reading))} read what was opened in training, and others predictions."
    return f"{protection} {what[0].upper()}{what[1:]}"


def besides(runs: Sequence[RecordedRun]) -> str:
    """What protected trainings assume, and what was found, where no columns are scored beside a guess."""
    return f"{protections(runs)}{found_besides(runs)}".strip()


def found_besides(runs: Sequence[RecordedRun]) -> str:
    """Columns whose largest leak is not from training, and labels, each as the attack found them best."""
    leaking = {leak.target for run in runs for leak in run.largest if leak.scored_set == Phase.TRAIN}
    alike = [[r for r in runs if how_trained(r) == how] for how in sorted({how_trained(r) for r in runs})]
    columns = (
        f" {how_trained(same[0])}, of {target} "
        f"{found_in_training(up_to_map(attack, target, r2), explained_number(r2))}."
        for same in alike
        for (attack, target), r2 in _best_explained(same).items()
        if target not in leaking
    )
    in_training = (
        f" {how_trained(same[0])}, {s}"
        for same in alike
        for s in _named_labels(_best_on_labels(same, training=True))
    )
    after = (f" Without training traffic, {s}" for s in _named_labels(_best_on_labels(runs, training=False)))
    return "".join([*columns, *in_training, *after])


def members_told(runs: Sequence[RecordedRun]) -> list[str]:
    """A sentence on the attack of each run that tells training rows from others best, and on each that names
    the client of a row.
    """
    where = [f"With {label}, " if len(runs) > 1 else "" for label in labels(runs)]
    named = [words for r, first in zip(runs, where, strict=True) for words in sites_told(r.sites, first)]
    return named + [
        f"{first}{r.attack} at {r.adversary} tells training rows of {r.target} from others with an AUC of "
        f"{r.auc:.3f} (a guess: {r.blind:.3f}): it names {100 * r.found_at[_ALARMS]:.1f} % of them while it "
        "takes 10 % of others for some."
        for run, first in zip(runs, where, strict=True)
        for r in run.membership[:1]
    ]


def _best_explained(runs: Sequence[RecordedRun]) -> Mapping[tuple[str, str], float]:
    """(attack, target) → the largest R² of several runs."""
    found = sorted(((key, r2) for run in runs for key, r2 in run.explained.items()), key=lambda t: t[1])
    return dict(found)  # the last of a key is its largest


def _best_on_labels(runs: Sequence[RecordedRun], *, training: bool) -> list[LabelResult]:
    """The best result of each attack on labels that does, or does not, read training traffic."""
    scored = sorted((r for run in runs for r in run.labels), key=lambda r: r.accuracy)
    wanted = (r for r in scored if reads_training(r.attack) == training)
    best = {(r.attack, r.adversary, r.target, r.scored_set): r for r in wanted}
    return sorted(best.values(), key=lambda r: -r.accuracy)


def _named_labels(found: Sequence[LabelResult]) -> list[str]:
    """A sentence each; with the target's name where there are several."""
    several = len({r.target for r in found}) > 1
    return [
        f"{r.attack} at {r.adversary} names {100 * r.accuracy:.1f} % of {r.rows:,} {r.kind} labels"
        f"{f' of {r.target}' if several else ''} rightly"
        f"{_AS_CLUSTERS if up_to_renaming(r.attack) else ''} "
        f"(the most frequent class: {100 * r.blind:.1f} %){_beside_anew(r)}."
        for r in found
    ]


def _beside_anew(r: LabelResult) -> str:
    words = anew(r.finding(r.adversary))
    return f"; {words}" if words else ""


def best_defense(runs: Sequence[RecordedRun], base: RecordedRun) -> Iterator[str]:
    """One sentence; none where fewer than two runs with defences stand beside the undefended ``base``."""
    names = dict(zip((run.name for run in runs), labels(runs), strict=True))
    defended = [run for run in runs if defenses(run) and run.largest]
    if len(defended) < 2 or defenses(base) or not base.largest:
        return
    best = min(defended, key=_leak)
    before, after = _leak(base), _leak(best)
    if before < HARDLY:
        return
    open_ = "of what a blind guess leaves open"
    if before - after < HARDLY:
        yield f"No defence here lessens the largest leak, {percent(before)} {open_}."
    else:
        leaks = f"The largest leak is {percent(after)} {open_}, without it {percent(before)}."
        yield f"Best defence here: {names[best.name]}. {leaks}"


def untried(runs: Sequence[RecordedRun]) -> str:
    """What a page says in the place of the best defence where no run has one; "" where one has."""
    if any(map(defenses, runs)):
        return ""
    return "No defence was tried." if any(run.largest for run in runs) else ""


def _leak(run: RecordedRun) -> float:
    return run.largest[0].taken
