"""The certificate of a released file: that of :func:`vflens.table_noise.certificate.certify`, and facts of
the file.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

import numpy as np

from vflens.experiments.release.columns import ReleasePlan
from vflens.experiments.release.options import ReleaseOptions
from vflens.experiments.release.passes import Effect, Scan
from vflens.table_noise.certificate import certify
from vflens.table_noise.mechanisms import Mechanism
from vflens.table_noise.preserving import Preserving
from vflens.tables.cells import suffix
from vflens.types import Document


@dataclass(frozen=True, eq=False)
class Classifier:
    """The result of solving the written file again; ``positive`` is the label that counts as +1.

    ``verified``: how far the classifier is from its definition's solution in CVXPY; None: not asked for.
    """

    preserving: Preserving
    theta: float
    rho: float
    positive: str
    verified: float | None = None


def certificate_facts(
    options: ReleaseOptions,
    plan: ReleasePlan,
    *,
    scan: Scan,
    mechanism: Mechanism,
    effect: Effect,
    classifier: Classifier | None,
) -> Document:
    """The certificate as JSON: the keys of :class:`vflens.table_noise.certificate.Guarantee`, then those of
    the file.

    ``encodings``; ``undone_by_rounding``, see :class:`vflens.experiments.release.passes.Effect`;
    ``warnings``.
    """
    solved = None
    if classifier:
        solved = {
            "preserving": classifier.preserving,
            "theta": classifier.theta,
            "rho": classifier.rho,
        }
    made = certify(
        mechanism,
        scan.moments,
        plan.names,
        delta=options.delta,
        diameter=options.span(len(plan.names)),
        classifier=solved,
        pi_from_data=options.pi_from_data,
    )
    facts = made.model_dump(mode="json")
    if classifier:
        facts["classifier"]["positive"] = classifier.positive
        facts["classifier"]["verified"] = classifier.verified
    facts["encodings"] = {
        n: {"kind": e.kind, "categories": list(e.categories)} for n, e in plan.encodings.items()
    }
    facts["conversions"] = dict(plan.conversions)
    facts["undone_by_rounding"] = effect.undone
    # only here codes name their categories; one-hot columns also do in the released file
    codes = [f"encodings.{n}.categories" for n in plan.found if plan.encodings[n].kind == "ordinal"]
    facts["private"] += ["undone_by_rounding", "warnings", *codes]
    facts["not_protected"] = [*_of_labels(facts["not_protected"], plan), *_exposed(plan)]
    facts["warnings"] = [
        *_of_columns(plan, scan),
        *_of_decoding(plan, effect),
        *_of_formulas(options, effect),
        *_of_noise(options, mechanism, classifier),
    ]
    return facts


def _of_labels(words: list[str], plan: ReleasePlan) -> list[str]:
    return words if plan.label is not None else [w for w in words if not w.startswith("labels")]


def _exposed(plan: ReleasePlan) -> Iterator[str]:
    if plan.kept_ids:
        yield (
            f"identifiers ({', '.join(plan.kept_ids)}): released as they are, "
            "they re-link every row to its person"
        )
    if plan.found:
        yield f"which categories occur in {', '.join(plan.found)}"


def _of_columns(plan: ReleasePlan, scan: Scan) -> Iterator[str]:
    by_name = dict(zip(plan.names, zip(scan.whole, scan.rising, strict=True), strict=True))
    whole = [f for f in plan.features if f not in plan.encodings and by_name[f][0]]
    if whole:
        yield (
            f"whole numbers are widened to float64 ({_some(whole)}): "
            "rounding them again undoes noise and moves a classifier"
        )
    rising = [f for f in whole if by_name[f][1]]
    if rising and scan.rows > 1:
        yield (
            f"column {rising[0]!r} counts upwards like a row number: if it identifies rows, "
            f"leave it out with --id {quote(rising[0])}"
        )
    if left_out := [name for name in plan.file.index if name not in plan.kept]:
        yield (
            f"the index that pandas wrote ({_some(left_out)}) is left out: to release it as it is, name it "
            "with --id and state keep_ids = true in [release] of a description"
        )
    if plan.kept_ids:
        yield (
            f"identifiers pass through ({_some(plan.kept_ids)}): anyone who has them elsewhere can re-link "
            "the rows"
        )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def _of_decoding(plan: ReleasePlan, effect: Effect) -> Iterator[str]:
    for features, decoder in (
        (
            [f for f in effect.undone if not _one_hot(plan, f)],
            "{} of the cells of {!r} can still be read off the released table, by rounding",
        ),
        (
            [f for f in effect.undone if _one_hot(plan, f)],
            "{} of the categories of {!r} can still be read off the released table, by arg-max",
        ),
    ):
        worst = max(features, key=lambda f: effect.undone[f], default=None)
        if worst is not None:
            rest = ", of the other such columns less or as much" if len(features) > 1 else ""
            yield decoder.format(f"{100 * effect.undone[worst]:.3g} %", worst) + rest


def _of_formulas(options: ReleaseOptions, effect: Effect) -> Iterator[str]:
    if not effect.formulas or suffix(options.out) == ".parquet":
        return
    begins = "names or cells of the released file begin like a formula (=, +, -, @, tab)"
    if options.excel_safe:
        yield f"{effect.formulas} {begins}: each has an apostrophe before it"
    else:
        yield (
            f"{effect.formulas} {begins}: a spreadsheet may run them, "
            "excel_safe = true in [release] of a description puts an apostrophe before each"
        )


def _one_hot(plan: ReleasePlan, feature: str) -> bool:
    return feature in plan.encodings and plan.encodings[feature].kind != "ordinal"


def _of_noise(options: ReleaseOptions, mechanism: Mechanism, classifier: Classifier | None) -> Iterator[str]:
    if options.seed is not None:
        yield "the noise follows from --seed: anyone who learns or guesses the seed can remove all of it"
    if (abs(mechanism.mean()) > 1e-9 * np.sqrt(np.diag(mechanism.covariance()))).any():
        yield "this noise has a mean: parameters.mean gives the shift of each column"
    if classifier is not None and not classifier.preserving.preserved:
        yield (
            "this release is not classifier-preserving: solved again, the classifier moves by "
            f"{classifier.preserving.change:.1e}, "
            "and 1e-6 is allowed: choose a smaller m or rescale the columns"
        )
