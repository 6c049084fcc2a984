package oracle;

import static oracle.Json.obj;

import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.shade.org.apache.datasketches.hll.HllSketch;
import org.apache.paimon.shade.org.apache.datasketches.hll.TgtHllType;
import org.apache.paimon.shade.org.apache.datasketches.memory.Memory;
import org.apache.paimon.shade.org.apache.datasketches.theta.Sketch;
import org.apache.paimon.shade.org.apache.datasketches.theta.UpdateSketch;
import org.apache.paimon.shade.org.apache.datasketches.theta.UpdateSketchBuilder;
import org.apache.paimon.shade.org.roaringbitmap.longlong.Roaring64Bitmap;
import org.apache.paimon.utils.HllSketchUtil;
import org.apache.paimon.utils.RoaringBitmap64;
import org.apache.paimon.utils.ThetaSketch;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.util.HexFormat;
import java.util.function.Consumer;
import java.util.stream.LongStream;

/** Bytes of sketches and 64-bit bitmaps, and what bytes of others mean to Java. */
final class Sketches {
    private Sketches() {}

    /** {@code sketches}: two values and their union, a line each. Values are series {@code start, step, count}. */
    static void write(Consumer<ObjectNode> out) throws Exception {
        long[] none = {};
        long[] few = {1, 7, 3};
        long[] fewMore = {8, 7, 4};
        long[] some = {0, 3, 300};
        long[] many = {0, 1, 9000};
        long[] manyMore = {5000, 1, 12000};
        long[][][] sketched = {{none, few}, {few, none}, {few, fewMore}, {few, some}, {some, few}};
        for (long[][] pair : sketched) {
            theta(out, 12, 12, pair);
            hll(out, 12, 12, TgtHllType.HLL_4, pair);
        }
        // Sampled, with different k; and two exact ones whose union is sampled.
        theta(out, 5, 6, new long[][] {many, manyMore});
        theta(out, 12, 12, new long[][] {{0, 1, 3800}, {2000, 1, 2500}});
        hll(out, 12, 12, TgtHllType.HLL_4, new long[][] {many, manyMore});
        hll(out, 12, 12, TgtHllType.HLL_4, new long[][] {few, many});
        hll(out, 12, 12, TgtHllType.HLL_8, new long[][] {many, few});
        for (TgtHllType type : new TgtHllType[] {TgtHllType.HLL_6, TgtHllType.HLL_8}) {
            hll(out, 10, 11, type, new long[][] {many, manyMore});
            hll(out, 11, 10, type, new long[][] {many, manyMore});
        }
        long[] wide = {0, 1L << 16, 5};
        long[] wider = {3, 1L << 16, 40};
        long[] widest = {0, 1L << 17, 150};
        long[] runs = {100, 1, 5000};
        long[] dense = {0, 2, 20000};
        long[] negative = {-3, 1, 6};
        long[] deep = {Long.MIN_VALUE, 1L << 44, 9};
        long[][][] mapped = {{none, few}, {few, fewMore}, {wide, few}, {wide, wider}, {wider, widest}, {runs, dense}, {negative, runs}, {deep, wide}};
        for (long[][] pair : mapped) {
            byte[] left = rbm64(pair[0]);
            byte[] right = rbm64(pair[1]);
            line(out, "rbm64", pair, left, right, union(left, right));
        }
    }

    /** {@code sketch-read}: the line {@code {"function","bytes"}} with the estimate, or the values as a count and a sum. */
    static ObjectNode read(ObjectNode line) throws Exception {
        byte[] bytes = HexFormat.of().parseHex(line.get("bytes").asText());
        ObjectNode answer = line.deepCopy();
        switch (line.get("function").asText()) {
            case "theta_sketch":
                return answer.put("estimate", Sketch.wrap(Memory.wrap(bytes)).getEstimate());
            case "hll_sketch":
                return answer.put("estimate", HllSketch.heapify(bytes).getEstimate());
            case "rbm64":
                Roaring64Bitmap bitmap = new Roaring64Bitmap();
                bitmap.deserialize(new DataInputStream(new ByteArrayInputStream(bytes)));
                long[] sum = {0};
                bitmap.forEach((long value) -> sum[0] += value);
                // Its tree must also take more values.
                bitmap.addLong(Long.MAX_VALUE);
                return answer.put("sum", sum[0]).put("count", bitmap.getLongCardinality() - 1);
            default:
                throw new IllegalArgumentException(line.toString());
        }
    }

    private static LongStream values(long[] series) {
        return series.length == 0 ? LongStream.empty() : LongStream.range(0, series[2]).map(i -> series[0] + i * series[1]);
    }

    private static byte[] theta(int lgK, long[] series) {
        UpdateSketch sketch = new UpdateSketchBuilder().setLogNominalEntries(lgK).build();
        values(series).forEach(sketch::update);
        return sketch.compact().toByteArray();
    }

    private static byte[] hll(int lgK, TgtHllType type, long[] series) {
        HllSketch sketch = new HllSketch(lgK, type);
        values(series).forEach(sketch::update);
        return sketch.toCompactByteArray();
    }

    private static void theta(Consumer<ObjectNode> out, int leftK, int rightK, long[][] pair) {
        byte[] left = theta(leftK, pair[0]);
        byte[] right = theta(rightK, pair[1]);
        line(out, "theta_sketch", pair, left, right, ThetaSketch.union(left, right));
    }

    private static void hll(Consumer<ObjectNode> out, int leftK, int rightK, TgtHllType type, long[][] pair) {
        byte[] left = hll(leftK, type, pair[0]);
        byte[] right = hll(rightK, type, pair[1]);
        line(out, "hll_sketch", pair, left, right, HllSketchUtil.union(left, right));
    }

    private static byte[] rbm64(long[] series) throws Exception {
        return RoaringBitmap64.bitmapOf(values(series).toArray()).serialize();
    }

    private static byte[] union(byte[] left, byte[] right) throws Exception {
        RoaringBitmap64 all = new RoaringBitmap64();
        all.deserialize(left);
        RoaringBitmap64 more = new RoaringBitmap64();
        more.deserialize(right);
        all.or(more);
        return all.serialize();
    }

    private static void line(Consumer<ObjectNode> out, String function, long[][] series, byte[] left, byte[] right, byte[] union) {
        HexFormat hex = HexFormat.of();
        ObjectNode line = obj().put("function", function);
        line.set("leftSeries", nodes(series[0]));
        line.set("rightSeries", nodes(series[1]));
        out.accept(line.put("left", hex.formatHex(left)).put("right", hex.formatHex(right)).put("union", hex.formatHex(union)));
    }

    private static ArrayNode nodes(long[] series) {
        ArrayNode all = Json.arr();
        LongStream.of(series).forEach(all::add);
        return all;
    }
}
