#!/usr/bin/env python3
"""Random scenarios of the merge engines, for a long run against the Java engine:

    random_scenarios.py SEED COUNT DIR
    bash run.sh golden DIR/*                       # Java's answers
    python3 random_scenarios.py --rows-only DIR    # trees of so small files hang on bytes: only rows are compared
    paimon-conformance golden DIR

What is known to differ is left out (docs/deviations.md), and so is what hangs on the grouping in both engines (docs/merge-engines.md):
retracts come after an add of their key, and only where taking back is the same however versions are merged.
"""
import json
import pathlib
import random
import sys

from scenario_lib import C, FLUSH, FULL, MINOR, Book

ADDS = ["+I", "+U"]


class Column:
    """A column's name, type, random values, options, and whether it takes retracts."""

    def __init__(self, name, kind, value, options=(), retracts=False):
        self.name, self.kind, self.value, self.retracts = name, kind, value, retracts
        self.options = {f"fields.{name}.{key}": text for key, text in dict(options).items()}


def maybe(rng, value):
    return None if rng.random() < 0.2 else value


def word(rng):
    return rng.choice(["a", "b", "cc", "a,b", "x;y", "é"])


def row_type(*fields):
    return {"type": "ROW", "fields": [{"id": i + 100, "name": n, "type": t} for i, (n, t) in enumerate(fields)]}


NESTED = {"type": "ARRAY", "element": row_type(("id", "INT"), ("v", "STRING"), ("w", "INT"))}
INTS = {"type": "ARRAY", "element": "INT"}


def nested(rng):
    ids = rng.sample(range(6), rng.randrange(4))
    return [[i, maybe(rng, word(rng)), maybe(rng, rng.randrange(9))] for i in ids]


def entries(rng, value):
    return sorted([[k, value()] for k in rng.sample(range(6), rng.randrange(4))], key=str)


def numbers(kind):
    if kind.startswith("DECIMAL"):
        return lambda rng: maybe(rng, f"{rng.randrange(-400, 400) / 100:.2f}")
    if kind in ("DOUBLE", "FLOAT"):
        return lambda rng: maybe(rng, rng.randrange(-40, 40) / 4)
    return lambda rng: maybe(rng, rng.randrange(-4, 5))


def column(rng, name, retracting):
    """A column with a random function; `retracting`: one that takes retracts whatever the grouping."""
    kind = rng.choice(["TINYINT", "SMALLINT", "INT", "BIGINT", "DOUBLE", "DECIMAL(20,2)", "DECIMAL(9,2)"])
    some = rng.choice(["INT", "STRING", "DATE", "DOUBLE", "TIMESTAMP(3)", "BIGINT"])

    def of_some(rng):
        day = f"2024-01-{rng.randrange(1, 9):02}"
        values = {"STRING": word(rng), "DATE": day, "DOUBLE": rng.randrange(9) / 2, "TIMESTAMP(3)": day + " 00:00:00.000"}
        return maybe(rng, values.get(some, rng.randrange(9)))

    both = [("sum", kind, numbers(kind), {})]
    adds = [
        ("min", some, of_some, {}),
        ("max", some, of_some, {}),
        ("last_value", some, of_some, {}),
        ("last_non_null_value", some, of_some, {}),
        ("first_value", some, of_some, {}),
        ("first_non_null_value", some, of_some, {}),
        ("bool_and", "BOOLEAN", lambda rng: maybe(rng, rng.random() < 0.7), {}),
        ("bool_or", "BOOLEAN", lambda rng: maybe(rng, rng.random() < 0.3), {}),
        ("product", "DOUBLE", lambda rng: maybe(rng, rng.choice([1, 2, -1, 0.5])), {}),
        ("listagg", "STRING", lambda rng: maybe(rng, word(rng)), {}),
        ("listagg", "STRING", lambda rng: maybe(rng, word(rng)), {"list-agg-delimiter": ";", "distinct": "true"}),
        ("collect", INTS, lambda rng: maybe(rng, [rng.randrange(5) for _ in range(rng.randrange(4))]), {}),
        ("collect", INTS, lambda rng: maybe(rng, rng.sample(range(6), rng.randrange(4))), {"distinct": "true"}),
        ("merge_map", {"type": "MAP", "key": "INT NOT NULL", "value": "STRING"},
         lambda rng: maybe(rng, entries(rng, lambda: maybe(rng, word(rng)))), {}),
        ("merge_map_with_keytime", {"type": "MAP", "key": "INT NOT NULL", "value": row_type(("v", "INT"), ("ts", "STRING"))},
         lambda rng: maybe(rng, entries(rng, lambda: [rng.randrange(9), f"{rng.randrange(20):02}"])), {}),
        ("nested_update", NESTED, lambda rng: maybe(rng, nested(rng)), {}),
        ("nested_update", NESTED, lambda rng: maybe(rng, nested(rng)), {"nested-key": "id"}),
        ("nested_partial_update", NESTED, lambda rng: maybe(rng, nested(rng)), {"nested-key": "id"}),
    ]
    if retracting and rng.random() < 0.5:
        function, kind, value, options = rng.choice(both)
        return Column(name, kind, value, {"aggregate-function": function, **options}, True)
    function, kind, value, options = rng.choice(adds)
    options = {"aggregate-function": function, **options}
    if retracting:
        options["ignore-retract"] = "true"
    # With all versions of a merge retracted these two hang on the grouping.
    if retracting and function in ("last_value", "first_value"):
        options["aggregate-function"] = function.replace("_value", "_non_null_value")
    return Column(name, kind, value, options, retracting)


def plain(rng, name):
    return rng.choice([
        Column(name, "INT", lambda rng: maybe(rng, rng.randrange(50))),
        Column(name, "STRING", lambda rng: maybe(rng, word(rng))),
        Column(name, "DOUBLE", lambda rng: maybe(rng, rng.randrange(50) / 8)),
    ])


def table(rng):
    """Columns, options, what retracts there are, and the columns that must grow with every write."""
    engine = rng.choice(["deduplicate", "aggregation", "aggregation", "partial-update", "partial-update", "groups", "groups"])
    options = {"merge-engine": "partial-update" if engine == "groups" else engine}
    retracts, growing, final = False, [], False
    if engine == "deduplicate":
        columns = [plain(rng, f"c{i}") for i in range(3)]
        retracts = rng.random() < 0.7
        if rng.random() < 0.4:
            options["sequence.field"] = "ts"
            columns.append(Column("ts", "INT", lambda rng: maybe(rng, rng.randrange(20))))
            # A delete that is dropped forgets its sequence.
            growing = ["ts"] if retracts else []
        if rng.random() < 0.2:
            options["ignore-delete"] = "true"
    elif engine == "aggregation":
        retracts = rng.random() < 0.4
        columns = [column(rng, f"c{i}", retracts) for i in range(4)]
        if retracts and rng.random() < 0.3 and not any("ignore-retract" in key for c in columns for key in c.options):
            options["aggregation.remove-record-on-delete"] = "true"
            final = True
        if not retracts and rng.random() < 0.4:
            options["sequence.field"] = "ts"
            # What is merged has the newest one's sequence: late rows hang on the grouping, where the order matters.
            columns.append(Column("ts", "INT", None))
            growing = ["ts"]
    elif engine == "partial-update":
        columns = [plain(rng, f"c{i}") for i in range(4)]
        if rng.random() < 0.3:
            options["ignore-delete"] = "true"
            retracts = True
        elif rng.random() < 0.3:
            options["partial-update.remove-record-on-delete"] = "true"
            retracts = final = True
    else:
        retracts = rng.random() < 0.5
        # Where a retract is the oldest version of a merge, a function begins with its value.
        inner = [column(rng, f"a{i}", False) if not retracts and rng.random() < 0.7 else plain(rng, f"a{i}") for i in range(2)]
        # Functions that know an order hang on the grouping of late rows.
        ordered = ("listagg", "first", "last", "collect", "nested", "merge_map")
        knows = [c for c in inner for key, text in c.options.items() if key.endswith("aggregate-function") and text.startswith(ordered)]
        sequence = lambda rng: rng.randrange(30)
        group = [Column("g", "INT", sequence), Column("h1", "INT", sequence), Column("h2", "INT", lambda rng: maybe(rng, rng.randrange(5)))]
        more = [plain(rng, "b0"), plain(rng, "b1")]
        columns = inner + group + more
        options["fields.g.sequence-group"] = ",".join(c.name for c in inner)
        options["fields.h1,h2.sequence-group"] = "b0,b1"
        growing = ["g"] if knows else []
        if not retracts:
            columns.append(plain(rng, "x"))
            group[0].value = lambda rng: maybe(rng, rng.randrange(30))
    for c in columns:
        options.update(c.options)
    return columns, options, retracts, growing, final


def scenario(book, seed):
    rng = random.Random(seed)
    columns, options, retracts, growing, final = table(rng)
    options["num-sorted-run.compaction-trigger"] = rng.choice([2, 3, 5])
    if rng.random() < 0.3:
        options["num-levels"] = rng.choice([3, 4])
    key_count = rng.randrange(1, 12)
    added, gone, clock = set(), set(), 0

    def row():
        nonlocal clock
        key = rng.randrange(key_count)
        while key in gone:
            key = rng.randrange(1000)
        kind = rng.choice(ADDS)
        if retracts and key in added and rng.random() < 0.3:
            kind = rng.choice(["-U", "-D"])
            if final:
                kind = "-D"
                gone.add(key)
        added.add(key)
        clock += 1
        values = [clock if c.name in growing else c.value(rng) for c in columns]
        return [kind, key] + values

    steps = []
    for _ in range(rng.randrange(3, 14)):
        for _ in range(rng.randrange(1, 3)):
            steps.append({"op": "write", "rows": [row() for _ in range(rng.randrange(1, 9))]})
            if rng.random() < 0.2:
                steps.append(FLUSH)
        steps.append(rng.choice([C, C, C, C, MINOR, FULL]))
        if rng.random() < 0.1:
            steps.append({"op": "reopen"})
    steps += [C, FULL]
    described = [{"name": "id", "type": "INT NOT NULL"}] + [{"name": c.name, "type": c.kind} for c in columns]
    book.add(f"random_{seed:06}", "Random.", described, ["id"], options, steps)


def rows_only(folder):
    for path in folder.glob("*/expected.json"):
        answer = json.loads(path.read_text())
        answer["sizeSensitive"] = True
        path.write_text(json.dumps(answer))


def main(arguments):
    if arguments[0] == "--rows-only":
        rows_only(pathlib.Path(arguments[1]))
        return
    first, count, folder = int(arguments[0]), int(arguments[1]), arguments[2]
    book = Book(folder)
    for seed in range(first, first + count):
        scenario(book, seed)


if __name__ == "__main__":
    main(sys.argv[1:])
