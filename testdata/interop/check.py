#!/usr/bin/env python3
"""Lets another engine read tables that ours wrote, and compares its rows with what is expected.

    check.py java|pypaimon KEPT

KEPT has a warehouse (table `default.t`) per scenario, as `paimon-conformance golden --keep` leaves them; the expectations are
those beside the scenarios in testdata/golden. Java also compacts a copy of each table, which must not change its rows. Prints
what differs, then `N passed, N failed, N skipped`.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "testdata" / "golden"
ORACLE = ROOT / "testdata" / "oracle" / "run.sh"
READER = ROOT / "testdata" / "interop" / "read_pypaimon.py"
PYTHON = ROOT / "target" / "ci" / "pypaimon" / "bin" / "python"
# The first that is there holds.
EXPECTATIONS = ["expected-ours.json", "expected-right.json", "expected-2.0.0.json", "expected.json"]
# Rows that are shown of a table that differs.
SHOWN = 5


def expected_rows(scenario):
    """Snapshot id → rows. A later step may have made an id anew after a rollback: the last one holds."""
    for name in EXPECTATIONS:
        file = GOLDEN / scenario / name
        if file.exists():
            steps = json.loads(file.read_text())["steps"]
            snapshots = [snapshot for step in steps for snapshot in step.get("snapshots", [])]
            return {snapshot["id"]: snapshot["rows"] for snapshot in snapshots if "rows" in snapshot}
    return None


def value(found, digits):
    """A value in a form that is equal for equal values: of a fraction of seconds, these digits but no zeros at the end."""
    if isinstance(found, list):
        return [value(part, digits) for part in found]
    if isinstance(found, str) and len(found) > 20 and found[4:5] == "-" and found[19:20] == ".":
        zone = "Z" if found.endswith("Z") else ""
        return found.rstrip("Z")[: 20 + digits].rstrip("0").rstrip(".") + zone
    return found


def sorted_rows(rows, digits):
    """Values without kinds (a batch read's kinds mean nothing), in one order."""
    return sorted((value(row[1:], digits) for row in rows), key=lambda row: json.dumps(row, sort_keys=True))


def ask(command):
    """The engine's answers, a JSON line each."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


class Tally:
    def __init__(self, digits):
        self.passed = self.failed = self.skipped = 0
        self.digits = digits

    def compare(self, what, answer, expected):
        if "skipped" in answer:
            self.skipped += 1
            print(f"skipped: {what}: {answer['skipped']}")
            return
        if "error" in answer:
            self.failed += 1
            print(f"{what}: {answer['error']}")
            return
        found, wanted = sorted_rows(answer["rows"], self.digits), sorted_rows(expected, self.digits)
        if found == wanted:
            self.passed += 1
            return
        self.failed += 1
        print(f"{what}: {len(found)} rows, expected {len(wanted)}")
        for sign, these, others in (("found", found, wanted), ("expected", wanted, found)):
            for row in [row for row in these if row not in others][:SHOWN]:
                print(f"  only {sign}: {json.dumps(row, ensure_ascii=False)}")


def check_reads(tally, engine, command, expectations, kept):
    answers = ask([*command, *(str(kept / scenario) for scenario in expectations)])
    for scenario, expected in expectations.items():
        here = [answer for answer in answers if pathlib.Path(answer["warehouse"]).name == scenario]
        if not here:
            tally.compare(f"{scenario} by {engine}", {"error": "no answer"}, [])
        for answer in here:
            id = answer.get("snapshot")
            what = f"{scenario} snapshot {id} by {engine}"
            if id is not None and id not in expected:
                tally.compare(what, {"error": "nobody expected this snapshot"}, [])
            else:
                tally.compare(what, answer, expected.get(id, []))


def check_java_compacts(tally, expectations, kept):
    with tempfile.TemporaryDirectory() as copies:
        for scenario in expectations:
            shutil.copytree(kept / scenario, pathlib.Path(copies) / scenario)
        command = ["bash", str(ORACLE), "compact"]
        answers = ask([*command, *(str(pathlib.Path(copies) / scenario) for scenario in expectations)])
    for answer in answers:
        scenario = pathlib.Path(answer["warehouse"]).name
        expected = expectations[scenario]
        tally.compare(f"{scenario} compacted by java", answer, expected[max(expected)])


def main(engine, kept):
    kept = pathlib.Path(kept)
    scenarios = sorted(folder.name for folder in kept.iterdir() if folder.is_dir()) if kept.is_dir() else []
    expectations = {scenario: rows for scenario in scenarios if (rows := expected_rows(scenario))}
    # pypaimon reads times to the microsecond.
    tally = Tally(digits=9 if engine == "java" else 6)
    if not expectations:
        tally.skipped += 1
        print(f"skipped: no tables with an expectation in {kept}")
    elif engine == "java":
        check_reads(tally, engine, ["bash", str(ORACLE), "rows"], expectations, kept)
        check_java_compacts(tally, expectations, kept)
    else:
        check_reads(tally, engine, [str(PYTHON), str(READER)], expectations, kept)
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return tally.failed > 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("java", "pypaimon"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2]))
