#!/usr/bin/env python3
"""Checks the locked dependency tree against deny.toml: licences, banned crates, crates with several versions, sources.

It reads the part of deny.toml that the project uses, from `cargo metadata`, so that nothing has to be built; `cargo deny check
licenses bans sources` says the same, in more detail.
"""

import json
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def allowed(expression, licences):
    """Whether an SPDX expression can be satisfied with these licences. `/` is the old way to write OR."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))

    def term():
        token = tokens.pop(0)
        if token == "(":
            value = any_of()
            tokens.pop(0)
            return value
        if tokens[:1] == ["WITH"]:
            tokens.pop(0)
            token = f"{token} WITH {tokens.pop(0)}"
        return token in licences

    def all_of():
        value = term()
        while tokens[:1] == ["AND"]:
            tokens.pop(0)
            value = term() and value
        return value

    def any_of():
        value = all_of()
        while tokens[:1] == ["OR"]:
            tokens.pop(0)
            value = all_of() or value
        return value

    return any_of()


def main():
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    command = ["cargo", "metadata", "--format-version=1", "--locked"]
    command += ["--all-features"] if rules["graph"]["all-features"] else []
    command += [f"--filter-platform={target}" for target in rules["graph"]["targets"]]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    used = {node["id"] for node in metadata["resolve"]["nodes"]}
    foreign = [package for package in metadata["packages"] if package["id"] in used and package["source"]]
    licences = set(rules["licenses"]["allow"])
    problems = []
    for package in foreign:
        name = f"{package['name']} {package['version']}"
        licence = package["license"]
        if not licence:
            problems.append(f"{name}: says no licence")
        elif not allowed(licence, licences):
            problems.append(f"{name}: licence '{licence}' is not allowed")
        if not re.match(r"(registry|sparse)\+", package["source"]):
            problems.append(f"{name}: comes from {package['source']}, not from the registry")
    for rule in rules["bans"]["deny"]:
        versions = sorted(package["version"] for package in foreign if package["name"] == rule["crate"])
        if rule.get("deny-multiple-versions"):
            if len(versions) > 1:
                problems.append(f"{rule['crate']}: several versions: {', '.join(versions)}")
        elif versions:
            problems.append(f"{rule['crate']} {', '.join(versions)}: banned")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(foreign)} dependencies checked, {len(problems)} problems")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
