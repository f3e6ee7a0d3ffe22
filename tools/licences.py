"""List the licence of each package that pytest-fairness and all its extras bring, as they declare it.

    python tools/licences.py

Ends with status 1 where a package declares none, or one that asks more of whoever distributes it
than to keep its notice and which is not listed here.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

EXTRAS = ("all", "completion")
#: Words of licences that ask for source, or for the same licence.
RECIPROCAL = re.compile(r"\b(A?GPL|LGPL|MPL|EPL|CDDL|EUPL|GNU|Mozilla)", re.IGNORECASE)
#: Packages under such a licence that are used as they are, from outside, each with the extra.
ACCEPTED = {
    "certifi": "MPL-2.0, files of certificates; by way of the extra llm",
    "tqdm": "MPL-2.0 and MIT; by way of the extra llm",
    "fpdf2": "LGPL-3.0-only, imported unchanged; the extra pdf",
    "pytest-html": "MPL-2.0, used unchanged; the extra html",
    "pytest-metadata": "MPL-2.0, used unchanged; by way of the extra html",
}


def declared(package: Distribution) -> str:
    """The licence that *package* declares: its expression, else its classifiers, else a first line."""
    metadata = package.metadata
    expression = metadata.get("License-Expression")
    if expression:
        return str(expression)
    classifiers = metadata.get_all("Classifier") or []
    named = [text.rpartition(" :: ")[2] for text in classifiers if text.startswith("License ::")]
    if named:
        return "; ".join(named)
    lines = str(metadata.get("License") or "").strip().splitlines()
    return lines[0] if lines else ""


def tree(name: str, extras: tuple[str, ...]) -> dict[str, Distribution]:
    """The packages that *name* brings with *extras* on this machine."""
    packages: dict[str, Distribution] = {}
    waiting = [Requirement(f"{name}[{','.join(extras)}]")]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement = waiting.pop()
        place = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if place in seen:
            continue
        seen.add(place)
        try:
            package = distribution(requirement.name)
        except PackageNotFoundError:
            sys.exit(f"{requirement.name} is not installed: pip install 'pytest-fairness[all]'")
        packages[place[0]] = package
        asked = [{"extra": extra} for extra in ("", *requirement.extras)]
        for text in package.requires or ():
            needed = Requirement(text)
            if needed.marker is None or any(needed.marker.evaluate(extra) for extra in asked):
                needed.marker = None
                waiting.append(needed)
    return packages


def main() -> int:
    faults = []
    for name, package in sorted(tree("pytest-fairness", EXTRAS).items()):
        licence = declared(package)
        print(f"{name:28} {package.version:14} {licence or '(none declared)'}")
        if not licence or (RECIPROCAL.search(licence) and name not in ACCEPTED):
            faults.append(name)
    if faults:
        print(f"look at: {', '.join(faults)}", file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
