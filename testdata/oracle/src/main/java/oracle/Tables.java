package oracle;

import static oracle.Json.obj;

import org.apache.paimon.CoreOptions;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.table.FileStoreTable;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;

/** Many warehouses, each with a table {@code default.t}, in one JVM. A table that fails does not stop the others. */
final class Tables {
    private static final String TABLE = "default.t";

    private Tables() {}

    /** {@code rows <warehouse>...}: the merged rows of every snapshot, a line each. */
    static void rows(String[] warehouses, Consumer<ObjectNode> out) {
        for (String warehouse : warehouses) {
            try {
                FileStoreTable table = Scenario.table(warehouse, TABLE);
                for (long id : new Dump(table).snapshotIds()) {
                    ObjectNode line = line(warehouse).put("snapshot", id);
                    try {
                        line.set("rows", rows(table, id));
                    } catch (Throwable e) {
                        line.set("error", Scenario.error(e));
                    }
                    out.accept(line);
                }
            } catch (Throwable e) {
                ObjectNode line = line(warehouse);
                line.set("error", Scenario.error(e));
                out.accept(line);
            }
        }
    }

    /** {@code streams <warehouse>...}: what a streaming read from the first snapshot on gives, a line a snapshot. */
    static void streams(String[] warehouses, Consumer<ObjectNode> out) {
        for (String warehouse : warehouses) {
            try {
                Dump dump = new Dump(Scenario.table(warehouse, TABLE));
                List<Long> ids = dump.snapshotIds();
                TreeMap<Long, ArrayNode> changes = new TreeMap<>();
                if (!ids.isEmpty()) {
                    dump.changelog(ids.get(0), changes);
                }
                changes.forEach((id, rows) -> {
                    ObjectNode line = line(warehouse).put("snapshot", id);
                    line.set("changelog", rows);
                    out.accept(line);
                });
            } catch (Throwable e) {
                ObjectNode line = line(warehouse);
                line.set("error", Scenario.error(e));
                out.accept(line);
            }
        }
    }

    /** {@code compact <warehouse>...}: full compaction of every bucket, then the rows, a line a table. */
    static void compact(String[] warehouses, Consumer<ObjectNode> out) {
        ObjectNode spec = obj();
        ArrayNode steps = spec.putArray("steps");
        steps.addObject().put("op", "reopen").putObject("options").put(CoreOptions.WRITE_ONLY.key(), "false");
        steps.addObject().put("op", "compact");
        for (String warehouse : warehouses) {
            ObjectNode line = line(warehouse);
            try (Scenario scenario = new Scenario(warehouse, spec, false)) {
                for (ObjectNode step : scenario.apply()) {
                    if (step.has("error")) {
                        line.set("error", step.get("error"));
                    }
                }
                FileStoreTable table = Scenario.table(warehouse, TABLE);
                List<Long> ids = new ArrayList<>(new Dump(table).snapshotIds());
                if (!ids.isEmpty() && !line.has("error")) {
                    long last = ids.get(ids.size() - 1);
                    line.put("snapshot", last).set("rows", rows(table, last));
                }
            } catch (Throwable e) {
                line.set("error", Scenario.error(e));
            }
            out.accept(line);
        }
    }

    private static ArrayNode rows(FileStoreTable table, long snapshot) throws Exception {
        return new Dump(table).rows(Map.of(CoreOptions.SCAN_SNAPSHOT_ID.key(), Long.toString(snapshot)));
    }

    private static ObjectNode line(String warehouse) {
        return obj().put("warehouse", warehouse);
    }
}
