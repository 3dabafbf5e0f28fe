import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.FileOutputStream;
import java.io.FileDescriptor;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's Java clients, driven by lines on standard input.
 *
 * A request is one line of fields between tabs, the first being the call; "produce" is followed by its records, one a line.
 * An answer is "ok", a tab and a number of lines, then these lines; or "error", a tab, Kafka's error code, a tab, a message.
 * Bytes travel in Base64 and "-" stands for null. Everything is done on one thread, one request after the other.
 */
public final class ClientDriver {
    private static final String NULL = "-";

    private final String bootstrap;
    private final Duration timeout;
    private final BufferedReader input;
    private final Admin admin;

    private ClientDriver(String bootstrap, Duration timeout, BufferedReader input) {
        this.bootstrap = bootstrap;
        this.timeout = timeout;
        this.input = input;
        this.admin = Admin.create(common());
    }

    public static void main(String[] arguments) throws IOException {
        // Standard output belongs to the answers; whatever else is printed goes to standard error.
        PrintStream output = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Duration timeout = Duration.ofMillis(Long.parseLong(arguments[1]));
        ClientDriver driver = new ClientDriver(arguments[0], timeout, input);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            output.print(driver.answer(line.split("\t", -1)));
            output.flush();
        }
        driver.admin.close();
    }

    private String answer(String[] request) {
        try {
            List<String> lines = call(request);
            StringBuilder text = new StringBuilder("ok\t" + lines.size() + "\n");
            lines.forEach(line -> text.append(line).append('\n'));
            return text.toString();
        } catch (Exception problem) {
            Throwable cause = problem instanceof ExecutionException ? problem.getCause() : problem;
            String message = String.valueOf(cause).replaceAll("\\s+", " ");
            return "error\t" + Errors.forException(cause).code() + "\t" + message + "\n";
        }
    }

    private List<String> call(String[] request) throws Exception {
        switch (request[0]) {
            case "create":
                return create(request[1], Integer.parseInt(request[2]), Short.parseShort(request[3]), request[4]);
            case "delete":
                admin.deleteTopics(List.of(request[1])).all().get();
                return List.of();
            case "grow":
                NewPartitions total = NewPartitions.increaseTo(Integer.parseInt(request[2]));
                admin.createPartitions(Map.of(request[1], total)).all().get();
                return List.of();
            case "partitions":
                return partitions(request[1]);
            case "configs":
                return configs(request[1]);
            case "cluster":
                return cluster();
            case "produce":
                return produce(request);
            case "consume":
                return consume(partition(request), Long.parseLong(request[3]), Integer.parseInt(request[4]));
            case "offset":
                return offset(partition(request), request[3]);
            default:
                throw new IllegalArgumentException("unknown call " + request[0]);
        }
    }

    private List<String> create(String topic, int partitions, short replication, String settings) throws Exception {
        Map<String, String> configs = new HashMap<>();
        for (String setting : settings.isEmpty() ? new String[0] : settings.split(",")) {
            String[] pair = setting.split("=", 2);
            configs.put(pair[0], pair[1]);
        }
        admin.createTopics(List.of(new NewTopic(topic, partitions, replication).configs(configs))).all().get();
        return List.of();
    }

    private List<String> partitions(String topic) throws Exception {
        try {
            int count = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
            return List.of(Integer.toString(count));
        } catch (ExecutionException problem) {
            if (problem.getCause() instanceof UnknownTopicOrPartitionException) {
                return List.of();
            }
            throw problem;
        }
    }

    private List<String> configs(String topic) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Config config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        List<String> lines = new ArrayList<>();
        config.entries().forEach(entry -> lines.add(entry.name() + "\t" + (entry.value() == null ? NULL : entry.value())));
        return lines;
    }

    private List<String> cluster() throws Exception {
        DescribeClusterResult cluster = admin.describeCluster();
        List<String> lines = new ArrayList<>();
        lines.add(cluster.clusterId().get() + "\t" + cluster.controller().get().id());
        for (Node node : cluster.nodes().get()) {
            lines.add(node.id() + "\t" + node.host() + ":" + node.port());
        }
        return lines;
    }

    private List<String> produce(String[] request) throws Exception {
        int count = Integer.parseInt(request[6]);
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int index = 0; index < count; index++) {
            records.add(record(request[1], Integer.parseInt(request[2]), input.readLine().split("\t", -1)));
        }
        Properties settings = common();
        settings.put("compression.type", request[3]);
        settings.put("acks", request[4]);
        settings.put("enable.idempotence", request[5]);
        settings.put("linger.ms", "20");
        settings.put("delivery.timeout.ms", Long.toString(timeout.toMillis()));
        settings.put("max.block.ms", Long.toString(timeout.toMillis()));
        settings.put("max.request.size", Integer.toString(8 << 20));
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        ByteArraySerializer serializer = new ByteArraySerializer();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, serializer, serializer)) {
            for (ProducerRecord<byte[], byte[]> record : records) {
                sent.add(producer.send(record));
            }
            producer.flush();
        }
        List<String> offsets = new ArrayList<>();
        for (Future<RecordMetadata> future : sent) {
            offsets.add(Long.toString(future.get().offset()));
        }
        return offsets;
    }

    private List<String> consume(TopicPartition partition, long start, int count) {
        List<String> lines = new ArrayList<>();
        long deadlineMs = System.currentTimeMillis() + timeout.toMillis();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(count)) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, start);
            while (lines.size() < count && System.currentTimeMillis() < deadlineMs) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                    if (lines.size() < count) {
                        lines.add(line(record));
                    }
                }
            }
        }
        return lines;
    }

    private List<String> offset(TopicPartition partition, String when) {
        List<TopicPartition> asked = List.of(partition);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(1)) {
            switch (when) {
                case "earliest":
                    return List.of(consumer.beginningOffsets(asked, timeout).get(partition).toString());
                case "latest":
                    return List.of(consumer.endOffsets(asked, timeout).get(partition).toString());
                default:
                    Map<TopicPartition, Long> times = Map.of(partition, Long.parseLong(when));
                    OffsetAndTimestamp found = consumer.offsetsForTimes(times, timeout).get(partition);
                    return found == null ? List.of() : List.of(Long.toString(found.offset()));
            }
        }
    }

    private KafkaConsumer<byte[], byte[]> consumer(int maxRecords) {
        Properties settings = common();
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("max.poll.records", Integer.toString(maxRecords));
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private Properties common() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("request.timeout.ms", Long.toString(timeout.toMillis() / 2));
        settings.put("default.api.timeout.ms", Long.toString(timeout.toMillis()));
        return settings;
    }

    private static TopicPartition partition(String[] request) {
        return new TopicPartition(request[1], Integer.parseInt(request[2]));
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, int partition, String[] fields) {
        Long timestampMs = fields[2].equals(NULL) ? null : Long.valueOf(fields[2]);
        ProducerRecord<byte[], byte[]> record =
            new ProducerRecord<>(topic, partition, timestampMs, decode(fields[0]), decode(fields[1]));
        String[] headers = Arrays.copyOfRange(fields, 3, fields.length);
        for (int index = 0; index < headers.length; index += 2) {
            record.headers().add(new String(decode(headers[index]), StandardCharsets.UTF_8), decode(headers[index + 1]));
        }
        return record;
    }

    private static String line(ConsumerRecord<byte[], byte[]> record) {
        List<String> fields = new ArrayList<>();
        fields.add(Long.toString(record.offset()));
        fields.add(Long.toString(record.timestamp()));
        fields.add(encode(record.key()));
        fields.add(encode(record.value()));
        for (Header header : record.headers()) {
            fields.add(encode(header.key().getBytes(StandardCharsets.UTF_8)));
            fields.add(encode(header.value()));
        }
        return String.join("\t", fields);
    }

    private static byte[] decode(String field) {
        return field.equals(NULL) ? null : Base64.getDecoder().decode(field);
    }

    private static String encode(byte[] bytes) {
        return bytes == null ? NULL : Base64.getEncoder().encodeToString(bytes);
    }
}
