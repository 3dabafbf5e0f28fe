import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Members of groups with Kafka's Java consumer, driven by lines on standard input.
 *
 * A request is one line of fields between tabs: a call, the name of a member, arguments. An answer is "ok", a tab and a number
 * of lines, then these lines; or "error", a tab, a zero, a tab and a message. Each member polls all the time on a thread of its
 * own and does between two polls what it is told.
 */
public final class GroupHost {
    private static final String NULL = "-";
    private static final long ANSWER_SECONDS = 30;

    private final String bootstrap;
    private final Map<String, Member> members = new HashMap<>();

    private GroupHost(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream output = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        GroupHost host = new GroupHost(arguments[0]);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            output.print(host.answer(line.split("\t", -1)));
            output.flush();
        }
        for (Member member : host.members.values()) {
            member.leave();
        }
    }

    private String answer(String[] request) {
        try {
            List<String> lines = call(request);
            StringBuilder text = new StringBuilder("ok\t" + lines.size() + "\n");
            lines.forEach(line -> text.append(line).append('\n'));
            return text.toString();
        } catch (Exception problem) {
            Throwable cause = problem instanceof ExecutionException ? problem.getCause() : problem;
            return "error\t0\t" + describe(cause) + "\n";
        }
    }

    private List<String> call(String[] request) throws Exception {
        if (request[0].equals("join")) {
            members.put(request[1], new Member(bootstrap, request[2], request[3], settings(request[4])));
            return List.of();
        }
        Member member = members.get(request[1]);
        switch (request[0]) {
            case "assigned":
                return List.of(member.error.isEmpty() ? member.perform(() -> numbers(member.consumer.assignment())) : "");
            case "records":
                return member.recordsFrom(Integer.parseInt(request[2]));
            case "events":
                return member.allEvents();
            case "error":
                return List.of(member.error);
            case "commit":
                member.perform(() -> member.commit(request[2]));
                return List.of();
            case "committed":
                return List.of(member.perform(() -> member.committed(Integer.parseInt(request[2]))));
            case "seek":
                member.perform(() -> member.seek(Integer.parseInt(request[2]), Long.parseLong(request[3])));
                return List.of();
            case "time":
                return List.of(member.perform(() -> member.offsetAt(Integer.parseInt(request[2]), Long.parseLong(request[3]))));
            case "hang":
                member.hanging = request[2].equals("true");
                return List.of();
            case "leave":
                members.remove(request[1]).leave();
                return List.of();
            default:
                throw new IllegalArgumentException("unknown call " + request[0]);
        }
    }

    private static Map<String, String> settings(String text) {
        Map<String, String> found = new HashMap<>();
        for (String setting : text.split(",")) {
            String[] pair = setting.split("=", 2);
            found.put(pair[0], pair[1]);
        }
        return found;
    }

    private static String numbers(Collection<TopicPartition> places) {
        return places.stream().map(TopicPartition::partition).sorted().map(String::valueOf).collect(Collectors.joining(","));
    }

    private static String describe(Throwable problem) {
        return String.valueOf(problem).replaceAll("\\s+", " ");
    }

    private static final class Member implements ConsumerRebalanceListener {
        private static final Duration POLL = Duration.ofMillis(50);
        private static final Map<String, String> STRATEGIES = Map.of(
            "range", "org.apache.kafka.clients.consumer.RangeAssignor",
            "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
            "sticky", "org.apache.kafka.clients.consumer.StickyAssignor",
            "cooperative", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

        private final String topic;
        private final Map<String, String> settings;
        private final List<String> records = Collections.synchronizedList(new ArrayList<>());
        private final List<String> events = Collections.synchronizedList(new ArrayList<>());
        private final LinkedBlockingQueue<FutureTask<String>> commands = new LinkedBlockingQueue<>();
        private final Thread thread = new Thread(this::run);
        private final KafkaConsumer<String, String> consumer;
        private volatile String error = "";
        private volatile boolean hanging = false;
        private volatile boolean over = false;

        Member(String bootstrap, String group, String topic, Map<String, String> settings) {
            this.topic = topic;
            this.settings = settings;
            this.consumer = new KafkaConsumer<>(properties(bootstrap, group), new StringDeserializer(), new StringDeserializer());
            thread.setDaemon(true);
            thread.start();
        }

        private Properties properties(String bootstrap, String group) {
            Properties given = new Properties();
            given.put("bootstrap.servers", bootstrap);
            given.put("group.id", group);
            given.put("auto.offset.reset", settings.get("reset"));
            boolean automatic = !settings.get("auto_commit_ms").equals("0");
            given.put("enable.auto.commit", Boolean.toString(automatic));
            given.put("auto.commit.interval.ms", automatic ? settings.get("auto_commit_ms") : "5000");
            given.put("max.poll.interval.ms", settings.get("poll_ms"));
            given.put("isolation.level", settings.get("isolation"));
            given.put("metadata.max.age.ms", "500");
            given.put("fetch.max.wait.ms", "50");
            given.put("reconnect.backoff.ms", "20");
            given.put("reconnect.backoff.max.ms", "200");
            given.put("default.api.timeout.ms", "20000");
            if (!settings.get("instance").isEmpty()) {
                given.put("group.instance.id", settings.get("instance"));
            }
            if (settings.get("protocol").equals("consumer")) {
                given.put("group.protocol", "consumer");
            } else {
                given.put("session.timeout.ms", settings.get("session_ms"));
                given.put("heartbeat.interval.ms", settings.get("heartbeat_ms"));
                given.put("partition.assignment.strategy", STRATEGIES.get(settings.get("assignor")));
            }
            return given;
        }

        private void run() {
            try {
                if (topic.startsWith("^")) {
                    consumer.subscribe(Pattern.compile(topic), this);
                } else {
                    consumer.subscribe(List.of(topic), this);
                }
                while (!over) {
                    for (FutureTask<String> command = commands.poll(); command != null; command = commands.poll()) {
                        command.run();
                    }
                    if (hanging || !error.isEmpty()) {
                        Thread.sleep(POLL.toMillis());
                    } else {
                        poll();
                    }
                }
            } catch (InterruptedException | RuntimeException problem) {
                error = describe(problem);
            } finally {
                consumer.close();
            }
        }

        private void poll() {
            try {
                for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                    records.add(record.partition() + "\t" + record.offset() + "\t" + record.value());
                }
            } catch (RuntimeException problem) {
                error = describe(problem);
            }
        }

        String perform(Callable<String> work) throws Exception {
            FutureTask<String> task = new FutureTask<>(work);
            commands.add(task);
            return task.get(ANSWER_SECONDS, TimeUnit.SECONDS);
        }

        void leave() throws InterruptedException, IOException {
            over = true;
            thread.join(TimeUnit.SECONDS.toMillis(ANSWER_SECONDS));
            if (thread.isAlive()) {
                throw new IOException("the consumer does not close");
            }
        }

        String commit(String how) {
            if (how.equals("async")) {
                consumer.commitAsync();
            } else {
                consumer.commitSync();
            }
            return "";
        }

        String committed(int partition) {
            TopicPartition place = new TopicPartition(topic, partition);
            OffsetAndMetadata found = consumer.committed(Set.of(place)).get(place);
            return found == null ? NULL : Long.toString(found.offset());
        }

        String seek(int partition, long offset) {
            consumer.seek(new TopicPartition(topic, partition), offset);
            return "";
        }

        String offsetAt(int partition, long timestampMs) {
            TopicPartition place = new TopicPartition(topic, partition);
            OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(place, timestampMs)).get(place);
            return found == null ? NULL : Long.toString(found.offset());
        }

        List<String> recordsFrom(int first) {
            synchronized (records) {
                return new ArrayList<>(records.subList(Math.min(first, records.size()), records.size()));
            }
        }

        List<String> allEvents() {
            synchronized (events) {
                return new ArrayList<>(events);
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> places) {
            note("assigned", places);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> places) {
            note("revoked", places);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> places) {
            note("lost", places);
        }

        private void note(String what, Collection<TopicPartition> places) {
            events.add(System.nanoTime() + "\t" + what + "\t" + numbers(places));
        }
    }
}
