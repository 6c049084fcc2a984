#!/usr/bin/env python3
"""Reads `default.t` of each warehouse with pypaimon: a JSON line a snapshot, as the Java oracle does it.

    read_pypaimon.py rows WAREHOUSE...        the rows of every snapshot
    read_pypaimon.py changelog WAREHOUSE...   what a stream gives from the first snapshot on

Values are written as testdata/oracle/README.md says. Tables with features that pypaimon does not have are reported as skipped.
"""

import asyncio
import decimal
import importlib.metadata
import json
import pathlib
import sys

import pyarrow
from pypaimon import CatalogFactory
from pypaimon.read.streaming_table_scan import AsyncStreamingTableScan

TABLE = "default.t"
VERSION = importlib.metadata.version("pypaimon")
MS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def text_of_time(nanos):
    seconds, fraction = divmod(nanos, 10**9)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction // 10**6:03}"


def text_of_timestamp(count, type):
    digits = MS[type.unit]
    seconds, fraction = divmod(count, 10**digits)
    text = pyarrow.scalar(seconds, pyarrow.int64()).cast(pyarrow.timestamp("s")).as_py().strftime("%Y-%m-%d %H:%M:%S")
    return text + (f".{fraction:0{digits}}" if digits else "") + ("Z" if type.tz else "")


def value(scalar):
    """An Arrow scalar in the oracle's form."""
    type = scalar.type
    if not scalar.is_valid:
        return None
    if pyarrow.types.is_map(type):
        entries = [[value(entry["key"]), value(entry["value"])] for entry in scalar.values]
        return sorted(entries, key=lambda entry: json.dumps(entry, ensure_ascii=False, separators=(",", ":")))
    if pyarrow.types.is_list(type) or pyarrow.types.is_large_list(type):
        return [value(part) for part in scalar.values]
    if pyarrow.types.is_struct(type):
        return [value(scalar[name]) for name in (field.name for field in type)]
    if pyarrow.types.is_float32(type):
        return number(float(str(pyarrow.array([scalar.as_py()], type).to_numpy()[0])))
    if pyarrow.types.is_floating(type):
        return number(scalar.as_py())
    if pyarrow.types.is_decimal(type):
        return format(scalar.as_py(), "f") if isinstance(scalar.as_py(), decimal.Decimal) else str(scalar.as_py())
    if pyarrow.types.is_binary(type) or pyarrow.types.is_fixed_size_binary(type) or pyarrow.types.is_large_binary(type):
        return scalar.as_py().hex()
    if pyarrow.types.is_date(type):
        return scalar.as_py().isoformat()
    if pyarrow.types.is_time(type):
        return text_of_time(scalar.value * 10 ** (9 - MS[type.unit]))
    if pyarrow.types.is_timestamp(type):
        return text_of_timestamp(scalar.value, type)
    return scalar.as_py()


def number(found):
    if found != found:
        return "NaN"
    if found in (float("inf"), float("-inf")):
        return "Infinity" if found > 0 else "-Infinity"
    return found


def rows(table):
    builder = table.new_read_builder()
    read = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    names = [field.name for field in table.fields]
    columns = [read.column(name) for name in names] if read.num_rows else []
    return [["+I", *(value(column[at]) for column in columns)] for at in range(read.num_rows)]


def open_table(warehouse):
    return CatalogFactory.create({"warehouse": str(warehouse)}).get_table(TABLE)


def answers(warehouse):
    snapshots = pathlib.Path(warehouse) / "default.db" / "t" / "snapshot"
    ids = sorted(int(file.name.split("-")[1]) for file in snapshots.glob("snapshot-*"))
    table = open_table(warehouse)
    for id in ids:
        try:
            yield {"snapshot": id, "rows": rows(table.copy({"scan.snapshot-id": str(id)}))}
        except NotImplementedError as error:
            yield {"snapshot": id, "skipped": f"pypaimon {VERSION}: {error}"}
        except Exception as error:
            yield {"snapshot": id, "error": f"{type(error).__name__}: {error}"}


async def plans(table):
    """What a stream reads of each snapshot, until it has caught up with the table."""
    latest = table.snapshot_manager().get_latest_snapshot().id
    # Far behind, a scan would rather compare two states than read the changes between them: it must not be so far.
    scan = AsyncStreamingTableScan(table, poll_interval_ms=10, prefetch_enabled=False, diff_threshold=latest + 1)
    scan.next_snapshot_id = 1
    stream = scan.stream()
    while scan.next_snapshot_id <= latest:
        plan = asyncio.ensure_future(anext(stream))
        # The scan plans without pauses: one that pauses has nothing to give.
        while not plan.done() and scan.next_snapshot_id <= latest:
            await asyncio.sleep(0.001)
        if not plan.done():
            plan.cancel()
            return
        yield plan.result()


async def changes(warehouse):
    table = open_table(warehouse)
    read = table.new_stream_read_builder().with_include_row_kind().new_read()
    names = ["_row_kind", *(field.name for field in table.fields)]
    found = []
    async for plan in plans(table):
        batch = read.to_arrow(plan.splits())
        columns = [batch.column(name) for name in names] if batch is not None and batch.num_rows else []
        rows = [[value(column[at]) for column in columns] for at in range(len(columns[0]) if columns else 0)]
        found.append({"snapshot": plan.snapshot_id, "changelog": rows})
    return found


READS = {"rows": answers, "changelog": lambda warehouse: asyncio.run(changes(warehouse))}

for warehouse in sys.argv[2:]:
    try:
        for answer in READS[sys.argv[1]](warehouse):
            print(json.dumps({"warehouse": warehouse, **answer}, ensure_ascii=False))
    except NotImplementedError as error:
        print(json.dumps({"warehouse": warehouse, "skipped": f"pypaimon {VERSION}: {error}"}, ensure_ascii=False))
    except Exception as error:
        print(json.dumps({"warehouse": warehouse, "error": f"{type(error).__name__}: {error}"}, ensure_ascii=False))
