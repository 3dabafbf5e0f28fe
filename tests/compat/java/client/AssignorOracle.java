import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Answers what the assignors of Apache Kafka's consumer work out: one line of JSON in, one line out.
 *
 * {"ask": "assign", "assignor": NAME, "topics": {TOPIC: [[RACK, ...] of each partition]}, "members": [...]}
 *     the partitions of each member
 * {"ask": "user-data", "assignor": NAME, "partitions": [...], "generation": N}
 *     what an assignor that was given these tells when it joins again
 * {"ask": "subscription", "bytes": BASE64}, {"ask": "write", "member": {...}}
 *     what the metadata of a member mean, and how they are written
 *
 * Members are as the subscriptions of the consumer's protocol have them. A failure is answered as {"error": TEXT}.
 */
public final class AssignorOracle {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] arguments) throws IOException {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.print(MAPPER.writeValueAsString(answer(line)));
            out.print('\n');
            out.flush();
        }
    }

    private static JsonNode answer(String line) {
        try {
            JsonNode question = MAPPER.readTree(line);
            switch (question.get("ask").asText()) {
                case "assign":
                    return assign(question);
                case "user-data":
                    return userData(question);
                case "write":
                    return MAPPER.valueToTree(base64(
                            ConsumerProtocol.serializeSubscription(subscription(question.get("member")))));
                default:
                    return described(ConsumerProtocol.deserializeSubscription(bytes(question.get("bytes"))));
            }
        } catch (Exception refusal) {
            return MAPPER.createObjectNode().put("error", refusal.toString());
        }
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        switch (name) {
            case "range":
                return new RangeAssignor();
            case "roundrobin":
                return new RoundRobinAssignor();
            case "sticky":
                return new StickyAssignor();
            default:
                return new CooperativeStickyAssignor();
        }
    }

    private static JsonNode assign(JsonNode question) {
        Map<String, Subscription> members = new HashMap<>();
        for (JsonNode member : question.get("members")) {
            members.put(member.get("id").asText(), subscription(member));
        }
        Map<String, Assignment> given = assignor(question.get("assignor").asText())
                .assign(cluster(question.get("topics")), new GroupSubscription(members)).groupAssignment();
        ObjectNode answer = MAPPER.createObjectNode();
        new TreeMap<>(given).forEach((member, assignment) -> answer.set(member, listed(assignment.partitions())));
        return answer;
    }

    private static JsonNode userData(JsonNode question) {
        ConsumerPartitionAssignor assignor = assignor(question.get("assignor").asText());
        assignor.onAssignment(new Assignment(partitions(question.get("partitions"))),
                metadata(question.get("generation").asInt()));
        return MAPPER.valueToTree(base64(assignor.subscriptionUserData(Collections.emptySet())));
    }

    @SuppressWarnings("removal")
    private static ConsumerGroupMetadata metadata(int generation) {
        return new ConsumerGroupMetadata("group", generation, "member", Optional.empty());
    }

    private static Cluster cluster(JsonNode topics) {
        Map<String, Node> nodes = new TreeMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        topics.properties().forEach(topic -> {
            for (int number = 0; number < topic.getValue().size(); number++) {
                List<Node> replicas = new ArrayList<>();
                for (JsonNode rack : topic.getValue().get(number)) {
                    replicas.add(nodes.computeIfAbsent(rack.asText(),
                            name -> new Node(nodes.size() + 1, "host", 9092, name)));
                }
                if (replicas.isEmpty()) {
                    replicas.add(nodes.computeIfAbsent("", name -> new Node(nodes.size() + 1, "host", 9092)));
                }
                Node[] array = replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(topic.getKey(), number, array[0], array, array));
            }
        });
        return new Cluster("cluster", nodes.values(), partitions, Collections.emptySet(), Collections.emptySet());
    }

    private static Subscription subscription(JsonNode member) {
        List<String> topics = new ArrayList<>();
        member.get("topics").forEach(topic -> topics.add(topic.asText()));
        Subscription subscription = new Subscription(
                topics,
                member.get("userData").isNull() ? null : bytes(member.get("userData")),
                partitions(member.get("owned")),
                member.get("generation").asInt(),
                Optional.ofNullable(member.get("rack").isNull() ? null : member.get("rack").asText()));
        subscription.setGroupInstanceId(
                Optional.ofNullable(member.get("instance").isNull() ? null : member.get("instance").asText()));
        return subscription;
    }

    private static JsonNode described(Subscription subscription) {
        ObjectNode answer = MAPPER.createObjectNode();
        answer.set("topics", MAPPER.valueToTree(subscription.topics()));
        answer.put("userData", subscription.userData() == null ? null : base64(subscription.userData()));
        answer.set("owned", listed(subscription.ownedPartitions()));
        answer.put("generation", subscription.generationId().orElse(-1));
        answer.put("rack", subscription.rackId().orElse(null));
        return answer;
    }

    private static List<TopicPartition> partitions(JsonNode listed) {
        List<TopicPartition> partitions = new ArrayList<>();
        listed.forEach(one -> partitions.add(new TopicPartition(one.get(0).asText(), one.get(1).asInt())));
        return partitions;
    }

    private static ArrayNode listed(List<TopicPartition> partitions) {
        ArrayNode listed = MAPPER.createArrayNode();
        partitions.forEach(one -> listed.add(MAPPER.createArrayNode().add(one.topic()).add(one.partition())));
        return listed;
    }

    private static ByteBuffer bytes(JsonNode text) {
        return ByteBuffer.wrap(Base64.getDecoder().decode(text.asText()));
    }

    private static String base64(ByteBuffer buffer) {
        byte[] found = new byte[buffer.remaining()];
        buffer.duplicate().get(found);
        return Base64.getEncoder().encodeToString(found);
    }
}
