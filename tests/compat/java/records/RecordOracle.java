import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.Utils;

/**
 * Answers what Apache Kafka's own classes make of record batches: one line in, one line out, fields separated by tabs.
 *
 * write JSON             the bytes of a batch with the records and the header fields given
 * marker JSON            the bytes of a batch that ends a transaction
 * read BYTES             every batch in the bytes, checksum checked, with its records, as JSON
 * appendtime MS BYTES    the bytes after the broker's clock was written into the first batch
 *
 * An answer starts with "ok", or with "error" and what was thrown.
 */
public final class RecordOracle {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final int ROOM_BYTES = 4 * 1024 * 1024;

    public static void main(String[] arguments) throws IOException {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.print(answer(line.split("\t", -1)));
            out.print('\n');
            out.flush();
        }
    }

    private static String answer(String[] words) {
        try {
            return "ok\t" + obey(words);
        } catch (Exception refusal) {
            return "error\t" + refusal.toString().replace('\n', ' ').replace('\t', ' ');
        }
    }

    private static String obey(String[] words) throws IOException {
        switch (words[0]) {
            case "write":
                return text(write(MAPPER.readTree(words[1])).buffer());
            case "marker":
                return text(marker(MAPPER.readTree(words[1])).buffer());
            case "read":
                return read(bytes(words[1])).toString();
            case "appendtime":
                return text(appendTime(Long.parseLong(words[1]), bytes(words[2])).buffer());
            default:
                throw new IllegalArgumentException("no such question: " + words[0]);
        }
    }

    private static MemoryRecords write(JsonNode wanted) {
        TimestampType type = wanted.get("logAppendTime").isNull() ? TimestampType.CREATE_TIME : TimestampType.LOG_APPEND_TIME;
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            new ByteBufferOutputStream(ROOM_BYTES),
            RecordBatch.MAGIC_VALUE_V2,
            Compression.of(wanted.get("codec").asText()).build(),
            type,
            wanted.get("baseOffset").asLong(),
            wanted.get("logAppendTime").asLong(RecordBatch.NO_TIMESTAMP),
            wanted.get("producerId").asLong(),
            (short) wanted.get("producerEpoch").asInt(),
            wanted.get("baseSequence").asInt(),
            wanted.get("transactional").asBoolean(),
            false,
            wanted.get("leaderEpoch").asInt(),
            ROOM_BYTES);
        for (JsonNode record : wanted.get("records")) {
            builder.appendWithOffset(
                record.get("offset").asLong(),
                record.get("timestamp").asLong(),
                bytes(record.get("key")),
                bytes(record.get("value")),
                headers(record.get("headers")));
        }
        return builder.build();
    }

    private static MemoryRecords marker(JsonNode wanted) {
        ControlRecordType type = ControlRecordType.valueOf(wanted.get("type").asText());
        return MemoryRecords.withEndTransactionMarker(
            wanted.get("baseOffset").asLong(),
            wanted.get("timestamp").asLong(),
            wanted.get("leaderEpoch").asInt(),
            wanted.get("producerId").asLong(),
            (short) wanted.get("producerEpoch").asInt(),
            new EndTransactionMarker(type, wanted.get("coordinatorEpoch").asInt()));
    }

    private static MemoryRecords appendTime(long timestamp, byte[] given) {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(given));
        records.batches().iterator().next().setMaxTimestamp(TimestampType.LOG_APPEND_TIME, timestamp);
        return records;
    }

    private static ArrayNode read(byte[] given) {
        ArrayNode seen = MAPPER.createArrayNode();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(given)).batches()) {
            batch.ensureValid();
            ObjectNode node = seen.addObject();
            node.put("baseOffset", batch.baseOffset());
            node.put("lastOffset", batch.lastOffset());
            node.put("size", batch.sizeInBytes());
            node.put("leaderEpoch", batch.partitionLeaderEpoch());
            node.put("magic", batch.magic());
            node.put("crc", batch.checksum());
            node.put("codec", batch.compressionType().name);
            node.put("logAppendTime", batch.timestampType() == TimestampType.LOG_APPEND_TIME);
            node.put("maxTimestamp", batch.maxTimestamp());
            node.put("producerId", batch.producerId());
            node.put("producerEpoch", batch.producerEpoch());
            node.put("baseSequence", batch.baseSequence());
            node.put("lastSequence", batch.lastSequence());
            node.put("count", batch.countOrNull());
            node.put("transactional", batch.isTransactional());
            node.put("control", batch.isControlBatch());
            node.put("offsetOfMaxTimestamp", batch.offsetOfMaxTimestamp().orElse(-1L));
            ArrayNode records = node.putArray("records");
            for (Record record : batch) {
                record.ensureValid();
                describe(records.addObject(), record, batch.isControlBatch());
            }
        }
        return seen;
    }

    private static void describe(ObjectNode node, Record record, boolean control) {
        node.put("offset", record.offset());
        node.put("timestamp", record.timestamp());
        node.put("key", record.hasKey() ? text(record.key()) : null);
        node.put("value", record.hasValue() ? text(record.value()) : null);
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            ObjectNode pair = headers.addObject();
            pair.put("key", header.key());
            pair.put("value", header.value() == null ? null : Base64.getEncoder().encodeToString(header.value()));
        }
        if (control) {
            EndTransactionMarker marker = EndTransactionMarker.deserialize(record);
            node.put("type", marker.controlType().name());
            node.put("coordinatorEpoch", marker.coordinatorEpoch());
        }
    }

    private static Header[] headers(JsonNode pairs) {
        Header[] headers = new Header[pairs.size()];
        for (int index = 0; index < headers.length; index++) {
            JsonNode pair = pairs.get(index);
            headers[index] = new RecordHeader(pair.get("key").asText(), bytes(pair.get("value")));
        }
        return headers;
    }

    private static byte[] bytes(JsonNode node) {
        return node.isNull() ? null : bytes(node.asText());
    }

    private static byte[] bytes(String text) {
        return Base64.getDecoder().decode(text);
    }

    private static String text(ByteBuffer buffer) {
        return Base64.getEncoder().encodeToString(Utils.toArray(buffer));
    }
}
