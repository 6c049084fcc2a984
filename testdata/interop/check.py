#!/usr/bin/env python3
"""Lets another engine read tables that ours wrote, and compares its rows with what is expected.

    check.py java|pypaimon KEPT

KEPT has a warehouse (table `default.t`) per scenario, as `paimon-conformance golden --keep` leaves them; the expectations are
those beside the scenarios in testdata/golden. Both also read our changelogs as a stream, from the first snapshot on. Java compacts a copy of each table, which must
not change its rows, and ours compacts tables that Java wrote, which Java then reads and compacts again. Tables with dynamic and postponed
buckets are written by both in turn. Rows are compared as the
conformance runner does: as multisets, without kinds, arrays that are sets in any order. What the other engine still has to merge it merges by the rules of its
version: an answer that only another expectation of the scenario has (of an older version, or what ours deviates from on purpose)
is a skip that says so; so is one that differs exactly as pypaimon's answer to Java's own table of the scenario does (pypaimon.json). Prints what differs, then `N passed, N failed, N skipped`.
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
# Aggregate functions whose arrays are sets: their order is the reference's hash order.
SETS = {"collect", "nested_update", "nested_partial_update"}
# What pypaimon 2.1.0 gets wrong of tables that Java wrote from the same scenarios: it knows no 64-bit deletion vectors, and sums the
# rows of all levels of tables whose compactions look old rows up. Scenario → snapshot → what differs.
PYPAIMON = json.loads((ROOT / "testdata" / "interop" / "pypaimon.json").read_text())
# Where Java merges a removing delete with a later add of its key, which lie in two files of ours, the row inherits the delete's values
# (docs/deviations.md). In the same form.
JAVA = json.loads((ROOT / "testdata" / "interop" / "java.json").read_text())
# Rows that are shown of a table that differs.
SHOWN = 5


class Expectation:
    """What a scenario's table holds."""

    def __init__(self, scenario):
        definition = json.loads((GOLDEN / scenario / "scenario.json").read_text())
        options, columns = definition["options"], definition["columns"]
        aggregates = [options.get(f"fields.{column['name']}.aggregate-function") for column in columns]
        files = [GOLDEN / scenario / name for name in EXPECTATIONS]
        self.scenario = scenario
        self.sets = [at for at, aggregate in enumerate(aggregates) if aggregate in SETS]
        # File → snapshot id → rows (None: a read fails).
        self.answers = {file.name: rows_by_snapshot(file) for file in files if file.exists()}
        first = json.loads(next(file for file in files if file.exists()).read_text())
        self.size_sensitive = first.get("sizeSensitive", False)

    @property
    def rows(self):
        """What counts for our engine."""
        return next(iter(self.answers.values()))

    def keep_until(self, last):
        for rows in self.answers.values():
            for id in [id for id in rows if id > last]:
                del rows[id]

    def last(self):
        """The last snapshot."""
        return max(self.rows)

    def canonical(self, rows, digits):
        """Rows without kinds, in one order."""
        return sorted((self.canonical_row(row[1:], digits) for row in rows), key=text)

    def canonical_row(self, values, digits):
        values = [value(found, digits) for found in values]
        for at in self.sets:
            if values[at] is not None:
                values[at] = sorted(values[at], key=text)
        return values


def rows_by_snapshot(file):
    steps = json.loads(file.read_text())["steps"]
    snapshots = [snapshot for step in steps for snapshot in step.get("snapshots", [])]
    # A later step may have made an id anew after a rollback: the last one holds.
    return {snapshot["id"]: snapshot.get("rows") for snapshot in snapshots if {"rows", "readError"} & snapshot.keys()}


def load(scenarios):
    """Scenario → expectation, of those with a table to read."""
    loaded = {scenario: Expectation(scenario) for scenario in scenarios}
    return {scenario: expectation for scenario, expectation in loaded.items() if expectation.rows}


def text(found):
    return json.dumps(found, sort_keys=True)


def value(found, digits):
    """A value in a form that is equal for equal values: of a fraction of seconds, these digits but no zeros at the end."""
    if isinstance(found, list):
        return [value(part, digits) for part in found]
    if isinstance(found, str) and len(found) > 20 and found[4:5] == "-" and found[19:20] == ".":
        zone = "Z" if found.endswith("Z") else ""
        return found.rstrip("Z")[: 20 + digits].rstrip("0").rstrip(".") + zone
    return found


def ask(command):
    """The engine's answers, a JSON line each."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


class Tally:
    def __init__(self, digits, known):
        self.passed = self.failed = self.skipped = 0
        self.digits = digits
        # Faults of the engine that is asked: scenario → snapshot → what differs.
        self.known = known

    def skip(self, what, why):
        self.skipped += 1
        print(f"skipped: {what}: {why}")

    def fail(self, what, why):
        self.failed += 1
        print(f"{what}: {why}")

    def compare(self, what, answer, expectation, id):
        """Whether an answer is what is expected of a snapshot: its rows, or an error."""
        if "skipped" in answer:
            return self.skip(what, answer["skipped"])
        rows = answer.get("rows")
        found = None if rows is None else expectation.canonical(rows, self.digits)
        answers = {name: rows.get(id) for name, rows in expectation.answers.items()}
        answers = {name: None if rows is None else expectation.canonical(rows, self.digits) for name, rows in answers.items()}
        wanted = next(iter(answers.values()))
        if found == wanted:
            self.passed += 1
            return None
        if found in answers.values():
            name = next(name for name, rows in answers.items() if rows == found)
            return self.skip(what, f"as its version merges: {name}")
        differs = difference(answer, found, wanted)
        if self.known.get(expectation.scenario, {}).get(str(id)) == differs:
            return self.skip(what, f"as is known of it: {json.dumps(differs, ensure_ascii=False)}")
        if wanted is None:
            return self.fail(what, "rows, where a read should fail")
        if found is None:
            return self.fail(what, answer["error"])
        self.fail(what, f"{len(found)} rows, expected {len(wanted)}")
        for sign, rows in differs.items():
            for row in rows[:SHOWN]:
                print(f"  only {sign}: {json.dumps(row, ensure_ascii=False)}")
        return None


def difference(answer, found, wanted):
    """The rows that only one of both has, or the error."""
    if found is None:
        return {"error": answer.get("error")}
    return {
        "found": [row for row in found if row not in (wanted or [])],
        "expected": [row for row in wanted or [] if row not in found],
    }


def scenario_of(answer):
    return pathlib.Path(answer["warehouse"]).name


def check_reads(tally, engine, command, expectations, kept):
    answers = ask([*command, *(str(kept / scenario) for scenario in expectations)])
    for scenario, expectation in expectations.items():
        here = [answer for answer in answers if scenario_of(answer) == scenario]
        if not here:
            tally.fail(f"{scenario} by {engine}", "no answer")
        if expectation.size_sensitive:
            # Which snapshots there are hangs on a few bytes of file size; what the last one holds does not.
            here = [{**answer, "snapshot": expectation.last()} for answer in here[-1:]]
        for answer in here:
            id = answer.get("snapshot")
            what = f"{scenario} snapshot {id} by {engine}"
            if id is None:
                tally.fail(f"{scenario} by {engine}", answer.get("error", "no snapshot"))
            elif id in expectation.rows:
                tally.compare(what, answer, expectation, id)
            else:
                tally.fail(what, "nobody expected this snapshot")


def has_stream(scenario, expectation):
    """Whether the changelog of a scenario is the same whatever the sizes of files are (that of each key, at least)."""
    options = json.loads((GOLDEN / scenario / "scenario.json").read_text())["options"]
    tells = options.get("changelog-producer", "none") != "none"
    return scenario.startswith("changelog_") or (tells and not expectation.size_sensitive)


def check_streams(tally, engine, command, scenarios, kept):
    """Another engine reads our changelogs as a stream: the changes of each key in their order, whichever snapshots they came with."""
    answers = ask([*command, *(str(kept / scenario) for scenario in scenarios)])
    for scenario in scenarios:
        definition = json.loads((GOLDEN / scenario / "scenario.json").read_text())
        key = [at for at, column in enumerate(definition["columns"]) if column["name"] in definition["primaryKeys"]]
        file = next(file for file in (GOLDEN / scenario / name for name in EXPECTATIONS) if file.exists())
        snapshots = [snapshot for step in json.loads(file.read_text())["steps"] for snapshot in step.get("snapshots", [])]
        wanted = by_key(snapshots, key, tally.digits)
        here = [answer for answer in answers if scenario_of(answer) == scenario]
        what = f"{scenario} streamed by {engine}"
        refused = [answer for answer in here if "skipped" in answer or "error" in answer]
        if refused:
            why = refused[0]
            tally.skip(what, why["skipped"]) if "skipped" in why else tally.fail(what, why["error"])
            continue
        found = by_key(sorted(here, key=lambda answer: answer["snapshot"]), key, tally.digits)
        # Columns that were added later are null in what was written before, for who reads by the latest schema.
        width = max((len(change) for changes in (*wanted.values(), *found.values()) for change in changes), default=0)
        wanted, found = widened(wanted, width), widened(found, width)
        different = [one for one in sorted(wanted.keys() | found.keys()) if wanted.get(one) != found.get(one)]
        if different and all(in_any_order(wanted.get(one)) == in_any_order(found.get(one)) for one in different):
            tally.skip(what, f"{engine} reads the changelog files of one snapshot in another order than they were written")
        elif different:
            one = different[0]
            tally.fail(what, f"key {one}: {found.get(one)}, expected {wanted.get(one)}")
        else:
            tally.passed += 1


def widened(changes_of, width):
    """Changes by key, with nulls at the end up to so many values."""
    return {key: [change + [None] * (width - len(change)) for change in changes] for key, changes in changes_of.items()}


def in_any_order(changes):
    return sorted(changes or [], key=text)


def by_key(snapshots, key, digits):
    """Changes of each key, in their order."""
    found = {}
    for kind, *values in [change for snapshot in snapshots for change in snapshot["changelog"]]:
        values = [value(part, digits) for part in values]
        found.setdefault(text([values[at] for at in key]), []).append([kind, *values])
    return found


def check_java_compacts(tally, expectations, warehouses):
    """Java compacts, which must not change the rows for Java; then ours reads them."""
    readable = {name: found for name, found in expectations.items() if found.rows[found.last()] is not None}
    for scenario in expectations.keys() - readable.keys():
        tally.skip(f"{scenario} compacted by java", "its rows cannot be merged")
    for answer in ask(["bash", str(ORACLE), "compact", *(str(warehouses / scenario) for scenario in readable)]):
        scenario = scenario_of(answer)
        expectation = readable[scenario]
        tally.compare(f"{scenario} compacted by java", answer, expectation, expectation.last())
        read = read_by_ours(warehouses / scenario)
        tally.compare(f"{scenario} compacted by java, read by ours", read, expectation, expectation.last())


def ours(warehouse, *command, table_then=()):
    """Our command line on a warehouse's table: the lines it prints as JSON, or why it refuses."""
    table = warehouse / "default.db" / "t"
    done = subprocess.run(
        [PAIMON, *command, table, *table_then, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False
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


def write_by_java(folder):
    """A table that Java wrote write-only: seven files on level 0. Returns what it holds."""
    name = "write_only_dedicated"
    scenario = json.loads((GOLDEN / name / "scenario.json").read_text())
    steps = scenario["steps"]
    scenario["steps"] = steps[: [step["op"] for step in steps].index("reopen")]
    file = folder / "scenario.json"
    file.write_text(json.dumps(scenario))
    for command in ("create", "apply"):
        subprocess.run(["bash", str(ORACLE), command, str(folder / name), str(file)], stdout=subprocess.DEVNULL, check=True)
    expectation = Expectation(name)
    expectation.keep_until(7)
    return expectation


def check_both_ways(tally):
    """Tables that Java wrote: ours compacts, Java reads; Java compacts on top, ours reads."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        written = write_by_java(folder)
        expectations = load(warehouse.parent.name for warehouse in sorted(GOLDEN.glob("*/warehouse")))
        for scenario in expectations.keys() - {written.scenario}:
            shutil.copytree(GOLDEN / scenario / "warehouse", folder / scenario)
        expectations[written.scenario] = written
        for scenario, expectation in list(expectations.items()):
            answer = ours(folder / scenario, "compact", "--full")
            if "lines" not in answer:
                tally.compare(f"{scenario} compacted by ours", answer, expectation, expectation.last())
                del expectations[scenario]
        latest = {}
        for answer in ask(["bash", str(ORACLE), "rows", *(str(folder / scenario) for scenario in expectations)]):
            latest[scenario_of(answer)] = answer
        for scenario, answer in latest.items():
            expectation = expectations[scenario]
            tally.compare(f"{scenario} compacted by ours, read by java", answer, expectation, expectation.last())
        check_java_compacts(tally, expectations, folder)


# Tables whose buckets are not fixed: options, partition columns, and whether Java's writer can go on with them alone.
BUCKETS = {
    "dynamic": ({"bucket": "-1", "dynamic-bucket.target-row-num": "5"}, [], True),
    "postponed": ({"bucket": "-2", "postpone.default-bucket-num": "2"}, [], True),
    "moved": ({"bucket": "-1"}, ["p"], False),
}


def check_buckets(tally):
    """Ours writes, Java writes on, ours compacts; both read. Keys stay in their bucket, or move with their partition."""
    with tempfile.TemporaryDirectory() as folder:
        folder, expected = pathlib.Path(folder), {}
        for name, (options, partition, java_writes) in BUCKETS.items():
            rows = expected[name] = {}
            warehouse = folder / name
            ours(warehouse, "create", "--column", "id INT NOT NULL", "--column", "p STRING", "--column", "v STRING", "--primary-key", "id",
                 *(["--partition-by", *partition] if partition else []), *(f"-D{key}={text}" for key, text in options.items()))
            for number, ids in enumerate([range(0, 12), range(6, 18)]):
                new = {id: ["+I", id, f"p{(id + number) % 2}", f"ours{number}"] for id in ids}
                rows.update(new)
                file = folder / "rows.jsonl"
                file.write_text("".join(json.dumps(row) + "\n" for row in new.values()))
                answer = ours(warehouse, "write", table_then=[file])
                if "lines" not in answer:
                    tally.fail(f"{name} written by ours", answer)
            if java_writes:
                new = {id: ["+I", id, "p2", "java"] for id in range(4, 24, 4)}
                rows.update(new)
                file = folder / "scenario.json"
                file.write_text(json.dumps({"steps": [{"op": "write", "rows": list(new.values())}, {"op": "commit"}]}))
                subprocess.run(["bash", str(ORACLE), "apply", str(warehouse), str(file)], stdout=subprocess.DEVNULL, check=True)
            answer = ours(warehouse, "compact", "--full")
            if "lines" not in answer:
                tally.fail(f"{name} compacted by ours", answer)
        latest = {}
        for answer in ask(["bash", str(ORACLE), "rows", *(str(folder / name) for name in BUCKETS)]):
            latest[scenario_of(answer)] = answer
        for name, rows in expected.items():
            for engine, answer in [("java", latest.get(name, {})), ("ours", read_by_ours(folder / name))]:
                if sorted((row[1:] for row in answer.get("rows", [])), key=text) == sorted((row[1:] for row in rows.values()), key=text):
                    tally.passed += 1
                else:
                    tally.fail(f"{name} buckets read by {engine}", answer)


def main(engine, kept):
    kept = pathlib.Path(kept)
    scenarios = sorted(folder.name for folder in kept.iterdir() if folder.is_dir()) if kept.is_dir() else []
    expectations = load(scenarios)
    # pypaimon reads times to the microsecond.
    tally = Tally(digits=9, known=JAVA) if engine == "java" else Tally(digits=6, known=PYPAIMON)
    streamed = [scenario for scenario, expectation in expectations.items() if has_stream(scenario, expectation)]
    if not expectations:
        tally.skipped += 1
        print(f"skipped: no tables with an expectation in {kept}")
    elif engine == "java":
        check_reads(tally, engine, ["bash", str(ORACLE), "rows"], expectations, kept)
        check_streams(tally, engine, ["bash", str(ORACLE), "streams"], streamed, kept)
        with tempfile.TemporaryDirectory() as copies:
            for scenario in expectations:
                shutil.copytree(kept / scenario, pathlib.Path(copies) / scenario)
            check_java_compacts(tally, expectations, pathlib.Path(copies))
        check_both_ways(tally)
        check_buckets(tally)
    else:
        check_reads(tally, engine, [str(PYTHON), str(READER), "rows"], expectations, kept)
        check_streams(tally, engine, [str(PYTHON), str(READER), "changelog"], streamed, kept)
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return tally.failed > 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("java", "pypaimon"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2]))
