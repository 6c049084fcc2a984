#!/usr/bin/env python3
"""Lets another engine read tables that ours wrote, and compares its rows with what is expected.

    check.py java|pypaimon KEPT

KEPT has a warehouse (table `default.t`) per scenario, as `paimon-conformance golden --keep` leaves them; the expectations are
those beside the scenarios in testdata/golden. Java also compacts a copy of each table, which must not change its rows, and ours
compacts tables that Java wrote, which Java then reads and compacts again. Prints what differs, then `N passed, N failed, N skipped`.
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
PAIMON = ROOT / "target" / "debug" / "paimon"
PYTHON = ROOT / "target" / "ci" / "pypaimon" / "bin" / "python"
# The first that is there holds.
EXPECTATIONS = ["expected-ours.json", "expected-right.json", "expected-2.0.0.json", "expected.json"]
# Rows that are shown of a table that differs.
SHOWN = 5


def expected_rows(scenario):
    """Snapshot id → rows. A later step may have made an id anew after a rollback: the last one holds.

    Only deduplicate tables: other engines leave sets in no order, and deviate on purpose (docs/deviations.md)."""
    options = json.loads((GOLDEN / scenario / "scenario.json").read_text())["options"]
    if options.get("merge-engine", "deduplicate") != "deduplicate":
        return None
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


def check_java_compacts(tally, expectations, warehouses):
    """Java compacts, which must not change the rows for Java; then ours reads them."""
    answers = ask(["bash", str(ORACLE), "compact", *(str(warehouses / scenario) for scenario in expectations)])
    for answer in answers:
        scenario = pathlib.Path(answer["warehouse"]).name
        rows = last(expectations[scenario])
        tally.compare(f"{scenario} compacted by java", answer, rows)
        tally.compare(f"{scenario} compacted by java, read by ours", read_by_ours(warehouses / scenario), rows)


def ours(warehouse, *command):
    """Our command line on a warehouse's table: the lines it prints as JSON, or why it refuses."""
    table = warehouse / "default.db" / "t"
    done = subprocess.run(
        [PAIMON, *command, table, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False
    )
    if done.returncode == 0:
        return {"lines": [json.loads(line) for line in done.stdout.splitlines()]}
    return {"skipped" if "not supported" in done.stderr + done.stdout else "error": done.stderr + done.stdout}


def read_by_ours(warehouse):
    answer = ours(warehouse, "read")
    if "lines" in answer:
        # The kinds of batch-read rows mean nothing; the others' rows have one in front.
        answer["rows"] = [["+I", *row.values()] for row in answer["lines"]]
    return answer


def last(snapshots):
    return snapshots[max(snapshots)]


def write_by_java(folder):
    """A table that Java wrote write-only: seven files on level 0. Returns its name and rows."""
    name = "write_only_dedicated"
    scenario = json.loads((GOLDEN / name / "scenario.json").read_text())
    steps = scenario["steps"]
    scenario["steps"] = steps[: [step["op"] for step in steps].index("reopen")]
    file = folder / "scenario.json"
    file.write_text(json.dumps(scenario))
    for command in ("create", "apply"):
        subprocess.run(["bash", str(ORACLE), command, str(folder / name), str(file)], stdout=subprocess.DEVNULL, check=True)
    rows = {id: rows for id, rows in expected_rows(name).items() if id <= 7}
    return name, rows


def check_both_ways(tally):
    """Tables that Java wrote: ours compacts, Java reads; Java compacts on top, ours reads."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        name, rows = write_by_java(folder)
        expectations = {name: rows}
        for warehouse in sorted(GOLDEN.glob("*/warehouse")):
            scenario = warehouse.parent.name
            if scenario != name and (rows := expected_rows(scenario)):
                shutil.copytree(warehouse, folder / scenario)
                expectations[scenario] = rows
        for scenario in list(expectations):
            answer = ours(folder / scenario, "compact", "--full")
            if "lines" not in answer:
                tally.compare(f"{scenario} compacted by ours", answer, [])
                del expectations[scenario]
        latest = {}
        for answer in ask(["bash", str(ORACLE), "rows", *(str(folder / scenario) for scenario in expectations)]):
            latest[pathlib.Path(answer["warehouse"]).name] = answer
        for scenario, answer in latest.items():
            tally.compare(f"{scenario} compacted by ours, read by java", answer, last(expectations[scenario]))
        check_java_compacts(tally, expectations, folder)


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
        with tempfile.TemporaryDirectory() as copies:
            for scenario in expectations:
                shutil.copytree(kept / scenario, pathlib.Path(copies) / scenario)
            check_java_compacts(tally, expectations, pathlib.Path(copies))
        check_both_ways(tally)
    else:
        check_reads(tally, engine, [str(PYTHON), str(READER)], expectations, kept)
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return tally.failed > 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("java", "pypaimon"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2]))
