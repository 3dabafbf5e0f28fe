import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

import com.dynatrace.hash4j.hashing.Hashing;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;

/**
 * Answers what Apache Kafka's group coordinator works out: one line in, one line out, fields separated by tabs.
 *
 * assign NAME SPEC          the assignment of a group, by member and topic; members are looked at in the order given
 * hash BYTES                the hash of bytes
 * topic NAME ID RACKS       the hash of a topic; the racks of each of its partitions
 * match EXPRESSION NAMES    which of the names match, or that it is no expression
 *
 * An answer starts with "ok", or with "error".
 */
public final class GroupOracle {
    private static final ObjectMapper MAPPER = new ObjectMapper();

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

    private static String obey(String[] words) throws Exception {
        switch (words[0]) {
            case "assign":
                return assign(words[1].equals("range") ? new RangeAssignor() : new UniformAssignor(), words[2]);
            case "hash":
                return Long.toString(Hashing.xxh3_64().hashBytesToLong(Base64.getDecoder().decode(words[1])));
            case "topic":
                return Long.toString(topicHash(words[1], Uuid.fromString(words[2]), MAPPER.readTree(words[3])));
            case "match":
                return match(text(words[1]), words);
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static String text(String base64) {
        return new String(Base64.getDecoder().decode(base64), StandardCharsets.UTF_8);
    }

    private static String match(String expression, String[] words) {
        Pattern pattern;
        try {
            pattern = Pattern.compile(expression);
        } catch (PatternSyntaxException refusal) {
            return "refused";
        }
        StringBuilder found = new StringBuilder();
        for (int place = 2; place < words.length; place++) {
            found.append(pattern.matcher(text(words[place])).matches() ? '1' : '0');
        }
        return found.toString();
    }

    private static long topicHash(String name, Uuid id, JsonNode racks) throws Exception {
        CoordinatorMetadataImage.TopicMetadata topic = (CoordinatorMetadataImage.TopicMetadata) Proxy.newProxyInstance(
            GroupOracle.class.getClassLoader(),
            new Class<?>[] {CoordinatorMetadataImage.TopicMetadata.class},
            (proxy, method, arguments) -> switch (method.getName()) {
                case "name" -> name;
                case "id" -> id;
                case "partitionCount" -> racks.size();
                default -> strings(racks.get((Integer) arguments[0]));
            });
        CoordinatorMetadataImage image = (CoordinatorMetadataImage) Proxy.newProxyInstance(
            GroupOracle.class.getClassLoader(),
            new Class<?>[] {CoordinatorMetadataImage.class},
            (proxy, method, arguments) -> Optional.of(topic));
        Class<?> utils = Class.forName("org.apache.kafka.coordinator.group.Utils");
        Method compute = utils.getDeclaredMethod("computeTopicHash", String.class, CoordinatorMetadataImage.class);
        compute.setAccessible(true);
        return (Long) compute.invoke(null, name, image);
    }

    private static List<String> strings(JsonNode node) {
        List<String> found = new ArrayList<>();
        node.forEach(one -> found.add(one.asText()));
        return found;
    }

    private static String assign(ConsumerGroupPartitionAssignor assignor, String text) throws Exception {
        Spec spec = new Spec(MAPPER.readTree(text));
        GroupAssignment assignment = assignor.assign(spec, spec);
        Map<String, Map<String, Set<Integer>>> found = new TreeMap<>();
        assignment.members().forEach((member, assigned) -> {
            Map<String, Set<Integer>> topics = new TreeMap<>();
            assigned.partitions().forEach((topic, partitions) ->
                topics.put(Long.toString(topic.getLeastSignificantBits()), new TreeSet<>(partitions)));
            found.put(member, topics);
        });
        return MAPPER.writeValueAsString(found);
    }

    private static final class Spec implements GroupSpec, SubscribedTopicDescriber {
        private final Map<String, JsonNode> members = new LinkedHashMap<>();
        private final JsonNode counts;
        private final boolean homogeneous;

        Spec(JsonNode spec) {
            spec.get("members").forEach(member -> members.put(member.get("id").asText(), member));
            counts = spec.get("counts");
            homogeneous = spec.get("homogeneous").asBoolean();
        }

        @Override
        public Collection<String> memberIds() {
            return members.keySet();
        }

        @Override
        public SubscriptionType subscriptionType() {
            return homogeneous ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        }

        @Override
        public boolean isPartitionAssigned(Uuid topic, int partition) {
            return members.keySet().stream().anyMatch(member ->
                memberAssignment(member).partitions().getOrDefault(topic, Set.of()).contains(partition));
        }

        @Override
        public boolean isPartitionAssignable(Uuid topic, int partition) {
            return true;
        }

        @Override
        public MemberSubscription memberSubscription(String member) {
            JsonNode node = members.get(member);
            Set<Uuid> topics = new LinkedHashSet<>();
            node.get("topics").forEach(topic -> topics.add(new Uuid(0, topic.asLong())));
            return new MemberSubscription() {
                @Override
                public Optional<String> rackId() {
                    return Optional.empty();
                }

                @Override
                public Optional<String> instanceId() {
                    return node.get("instance").isNull() ? Optional.empty() : Optional.of(node.get("instance").asText());
                }

                @Override
                public Set<Uuid> subscribedTopicIds() {
                    return topics;
                }
            };
        }

        @Override
        public MemberAssignment memberAssignment(String member) {
            Map<Uuid, Set<Integer>> assigned = new LinkedHashMap<>();
            JsonNode had = members.get(member).get("assigned");
            had.fieldNames().forEachRemaining(topic -> {
                Set<Integer> partitions = new LinkedHashSet<>();
                had.get(topic).forEach(one -> partitions.add(one.asInt()));
                assigned.put(new Uuid(0, Long.parseLong(topic)), partitions);
            });
            Map<Uuid, Set<Integer>> fixed = Collections.unmodifiableMap(assigned);
            return () -> fixed;
        }

        @Override
        public int numPartitions(Uuid topic) {
            JsonNode count = counts.get(Long.toString(topic.getLeastSignificantBits()));
            return count == null ? -1 : count.asInt();
        }

        @Override
        public Set<String> racksForPartition(Uuid topic, int partition) {
            return Set.of();
        }
    }
}
