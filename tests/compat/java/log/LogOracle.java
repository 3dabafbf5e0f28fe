import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.function.Supplier;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Apache Kafka's own log, asked over a pipe: one line in, one line out, words separated by tabs.
 *
 *   configs                                       one word per topic key: name|type|default|synonym*factor...
 *   validate key value                            ok, or the error
 *   open directory clean topicId key=value...     log start offset, log end offset
 *   append leaderEpoch base64                     first offset, last offset
 *   own leaderEpoch transactionVersion base64     the same for what a coordinator writes: records or a marker
 *   read offset maxBytes minOne                   base64
 *   committed offset maxBytes                     last stable offset, base64, producer:offset of aborted transactions...
 *   time timestamp                                offset, timestamp, leader epoch
 *   start offset                                  log start offset; everything is below the high watermark
 *   retain nowMs key=value...                     log start offset, log end offset, after old segments were deleted
 *   clean firstDirtyOffset nowMs mapBytes         first dirty offset afterwards
 *   roll | close                                  ok
 */
public final class LogOracle {
    private static final int PRODUCER_EXPIRATION_MS = Integer.MAX_VALUE;
    private final KafkaScheduler scheduler = new KafkaScheduler(1);
    private final SetTime time = new SetTime();
    private UnifiedLog log;

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        LogOracle oracle = new LogOracle();
        oracle.scheduler.startup();
        String line;
        while ((line = in.readLine()) != null) {
            try {
                out.println("ok\t" + oracle.answer(line.split("\t", -1)));
            } catch (Exception caught) {
                Exception error = caught instanceof RecordValidationException
                    ? ((RecordValidationException) caught).invalidException() : caught;
                String text = String.valueOf(error.getMessage()).replace('\n', ' ').replace('\t', ' ');
                out.println("error\t" + Errors.forException(error).name() + "\t" + text);
            }
        }
        oracle.scheduler.shutdown();
    }

    private String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "configs": return configs();
            case "validate": return validate(words[1], words[2]);
            case "open": return open(words);
            case "append": return append(Integer.parseInt(words[1]), Base64.getDecoder().decode(words[2]));
            case "own": return own(Integer.parseInt(words[1]), Short.parseShort(words[2]), Base64.getDecoder().decode(words[3]));
            case "committed": return committed(Long.parseLong(words[1]), Integer.parseInt(words[2]));
            case "read": return read(Long.parseLong(words[1]), Integer.parseInt(words[2]), Boolean.parseBoolean(words[3]));
            case "time": return byTime(Long.parseLong(words[1]));
            case "start": return start(Long.parseLong(words[1]));
            case "retain": return retain(words);
            case "clean": return clean(Long.parseLong(words[1]), Long.parseLong(words[2]), Integer.parseInt(words[3]));
            case "roll": log.roll(Optional.empty()); return "";
            case "close": log.close(); return "";
            default: throw new IllegalArgumentException(words[0]);
        }
    }

    private static String configs() {
        StringBuilder text = new StringBuilder();
        for (ConfigDef.ConfigKey key : new TreeMap<>(LogConfig.configDefCopy().configKeys()).values()) {
            Object value = ConfigDef.convertToString(key.defaultValue, key.type);
            text.append(key.name).append('|').append(key.type).append('|').append(value == null ? "" : value);
            for (var synonym : ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.getOrDefault(key.name, List.of()))
                text.append('|').append(synonym.name()).append('*').append(synonym.converter().apply("1"));
            text.append('\t');
        }
        return text.toString().trim();
    }

    private static String validate(String key, String value) {
        LogConfig.validate(Map.of(key, value));
        return "";
    }

    private String open(String[] words) throws Exception {
        File directory = new File(words[1]);
        directory.mkdirs();
        time.nowMs = -1;
        log = UnifiedLog.create(directory, settings(words, 4), 0L, 0L, scheduler,
            new BrokerTopicStats(), time, Integer.MAX_VALUE,
            new ProducerStateManagerConfig(PRODUCER_EXPIRATION_MS, false), 600_000, new LogDirFailureChannel(1),
            Boolean.parseBoolean(words[2]), Optional.of(Uuid.fromString(words[3])));
        return log.logStartOffset() + "\t" + log.logEndOffset();
    }

    private static LogConfig settings(String[] words, int from) {
        Properties settings = new Properties();
        for (int at = from; at < words.length; at++)
            settings.put(words[at].substring(0, words[at].indexOf('=')), words[at].substring(words[at].indexOf('=') + 1));
        return LogConfig.fromProps(new HashMap<>(), settings);
    }

    private String start(long offset) throws Exception {
        log.updateHighWatermark(log.logEndOffset());
        log.maybeIncrementLogStartOffset(offset, LogStartOffsetIncrementReason.ClientRecordDeletion);
        return String.valueOf(log.logStartOffset());
    }

    private String retain(String[] words) throws Exception {
        time.nowMs = Long.parseLong(words[1]);
        log.updateConfig(settings(words, 2));
        log.updateHighWatermark(log.logEndOffset());
        log.deleteOldSegments();
        return log.logStartOffset() + "\t" + log.logEndOffset();
    }

    private String append(int leaderEpoch, byte[] batch) throws Exception {
        LogAppendInfo info = log.appendAsLeader(MemoryRecords.readableRecords(ByteBuffer.wrap(batch)), leaderEpoch);
        return info.firstOffset() + "\t" + info.lastOffset();
    }

    private String own(int leaderEpoch, short transactionVersion, byte[] batch) throws Exception {
        LogAppendInfo info = log.appendAsLeader(MemoryRecords.readableRecords(ByteBuffer.wrap(batch)), leaderEpoch,
            AppendOrigin.COORDINATOR, RequestLocal.noCaching(), VerificationGuard.SENTINEL, transactionVersion);
        return info.firstOffset() + "\t" + info.lastOffset();
    }

    private String committed(long offset, int maxBytes) throws Exception {
        log.updateHighWatermark(log.logEndOffset());
        FetchDataInfo found = log.read(offset, maxBytes, FetchIsolation.TXN_COMMITTED, true);
        StringBuilder text = new StringBuilder(log.lastStableOffset() + "\t" + encoded(found));
        for (var aborted : found.abortedTransactions.orElse(List.of()))
            text.append('\t').append(aborted.producerId()).append(':').append(aborted.firstOffset());
        return text.toString();
    }

    private String read(long offset, int maxBytes, boolean minOne) throws Exception {
        return encoded(log.read(offset, maxBytes, FetchIsolation.LOG_END, minOne));
    }

    private static String encoded(FetchDataInfo found) throws Exception {
        ByteBuffer buffer = ByteBuffer.allocate(found.records.sizeInBytes());
        if (found.records instanceof FileRecords)
            ((FileRecords) found.records).readInto(buffer, 0);
        return Base64.getEncoder().encodeToString(buffer.array());
    }

    private String clean(long firstDirtyOffset, long nowMs, int mapBytes) throws Exception {
        log.updateHighWatermark(log.logEndOffset());
        Throttler throttler = new Throttler(Double.MAX_VALUE, 1000L, "io", "bytes", time);
        Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(mapBytes), 1 << 20, 1 << 20, 0.9, throttler, time,
            partition -> { });
        LogToClean dirty = new LogToClean(log, firstDirtyOffset, log.activeSegment().baseOffset(), false);
        return String.valueOf(cleaner.doClean(dirty, nowMs).getKey());
    }

    private String byTime(long timestamp) throws Exception {
        var found = log.fetchOffsetByTimestamp(timestamp, Optional.empty()).timestampAndOffsetOpt();
        return found.map(at -> at.offset + "\t" + at.timestamp + "\t" + at.leaderEpoch.orElse(-1)).orElse("none");
    }

    /** The system's time until another one is set. */
    private static final class SetTime implements Time {
        private volatile long nowMs = -1;

        @Override
        public long milliseconds() {
            return nowMs < 0 ? Time.SYSTEM.milliseconds() : nowMs;
        }

        @Override
        public long nanoseconds() {
            return Time.SYSTEM.nanoseconds();
        }

        @Override
        public void sleep(long ms) {
            Time.SYSTEM.sleep(ms);
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) throws InterruptedException {
            Time.SYSTEM.waitObject(object, condition, deadlineMs);
        }
    }
}
