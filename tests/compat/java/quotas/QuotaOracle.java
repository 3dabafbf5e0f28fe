import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.function.Supplier;

import kafka.network.ConnectionQuotas;
import kafka.server.ClientRequestQuotaManager;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.ConnectionThrottledException;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/**
 * Apache Kafka's own quotas by a clock that is set, asked over a pipe: one line in, one line out, words separated by
 * tabs. The user is always ANONYMOUS.
 *
 *   new samples windowSeconds                       forget everything
 *   limit kind user client value                    user and client: a name, * for the default, - for none; value or -
 *   record kind client amount nowMs                 throttle time
 *   unrecord kind client amount nowMs               ok
 *   most kind client                                the largest amount that may pass at once
 *   mutate client strict|permissive nowMs counts... for each count done or refused; then the throttle time
 *   address host limit                              host: an address or *; limit or -
 *   connect host nowMs                              throttle time, 0 for a connection that is accepted
 */
public final class QuotaOracle {
    private static final ListenerName LISTENER = new ListenerName("PLAINTEXT");
    private final SetTime time = new SetTime();
    private final Session session = new Session(KafkaPrincipal.ANONYMOUS, InetAddress.getLoopbackAddress());
    private final Map<String, ClientQuotaManager> managers = new HashMap<>();
    private ControllerMutationQuotaManager mutations;
    private ConnectionQuotas connections;

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        QuotaOracle oracle = new QuotaOracle();
        String line;
        while ((line = in.readLine()) != null) {
            out.println(oracle.answer(line.split("\t", -1)));
        }
        oracle.end();
        System.exit(0);
    }

    private String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "new": return begin(Integer.parseInt(words[1]), Integer.parseInt(words[2]));
            case "limit": return limit(managers.get(words[1]), words[2], words[3], words[4]);
            case "record": return record(managers.get(words[1]), words[2], words[3], words[4]);
            case "unrecord":
                managers.get(words[1]).unrecordQuotaSensor(
                    session, words[2], Double.parseDouble(words[3]), setTime(words[4]));
                return "ok";
            case "most": return String.valueOf(managers.get(words[1]).maxValueInQuotaWindow(session, words[2]));
            case "mutate": return mutate(words);
            case "address": return address(words[1], words[2]);
            case "connect": return connect(words[1], setTime(words[2]));
            default: throw new IllegalArgumentException(words[0]);
        }
    }

    private void end() {
        managers.values().forEach(ClientQuotaManager::initiateShutdown);
        managers.clear();
    }

    private String begin(int samples, int windowSeconds) {
        end();
        time.nowMs = 0;
        Metrics metrics = new Metrics(new MetricConfig(), List.of(), time, false);
        ClientQuotaManagerConfig config = new ClientQuotaManagerConfig(samples, windowSeconds);
        managers.put("produce", new ClientQuotaManager(config, metrics, QuotaType.PRODUCE, time, "", Optional.empty()));
        managers.put("request", new ClientRequestQuotaManager(config, metrics, time, "", Optional.empty()));
        mutations = new ControllerMutationQuotaManager(config, metrics, time, "", Optional.empty());
        managers.put("mutation", mutations);
        Properties properties = new Properties();
        properties.put("process.roles", "broker");
        properties.put("node.id", "1");
        properties.put("listeners", "PLAINTEXT://localhost:9092");
        properties.put("controller.listener.names", "CONTROLLER");
        properties.put("controller.quorum.voters", "2@localhost:9093");
        properties.put("quota.window.num", String.valueOf(samples));
        properties.put("quota.window.size.seconds", String.valueOf(windowSeconds));
        KafkaConfig broker = KafkaConfig.fromProps(properties, false);
        connections = new ConnectionQuotas(broker, time, metrics);
        connections.addListener(broker, LISTENER);
        return "ok";
    }

    private long setTime(String nowMs) {
        time.nowMs = Long.parseLong(nowMs);
        return time.nowMs;
    }

    private String limit(ClientQuotaManager manager, String user, String client, String value) {
        Optional<ClientQuotaEntity.ConfigEntity> userEntity = switch (user) {
            case "-" -> Optional.empty();
            case "*" -> Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY);
            default -> Optional.of(new ClientQuotaManager.UserEntity(user));
        };
        Optional<ClientQuotaEntity.ConfigEntity> clientEntity = switch (client) {
            case "-" -> Optional.empty();
            case "*" -> Optional.of(ClientQuotaManager.DEFAULT_USER_CLIENT_ID);
            default -> Optional.of(new ClientQuotaManager.ClientIdEntity(client));
        };
        Optional<Quota> quota = value.equals("-")
            ? Optional.empty() : Optional.of(Quota.upperBound(Double.parseDouble(value)));
        manager.updateQuota(userEntity, clientEntity, quota);
        return "ok";
    }

    private String record(ClientQuotaManager manager, String client, String amount, String nowMs) {
        long now = setTime(nowMs);
        return String.valueOf(
            manager.maybeRecordAndGetThrottleTimeMs(session, client, Double.parseDouble(amount), now));
    }

    private String mutate(String[] words) {
        setTime(words[3]);
        ControllerMutationQuota quota = words[2].equals("strict")
            ? mutations.newStrictQuotaFor(session, words[1]) : mutations.newPermissiveQuotaFor(session, words[1]);
        StringBuilder answer = new StringBuilder();
        for (int i = 4; i < words.length; i++) {
            try {
                quota.record(Double.parseDouble(words[i]));
                answer.append("done\t");
            } catch (ThrottlingQuotaExceededException refused) {
                answer.append("refused\t");
            }
        }
        return answer.append(quota.throttleTime()).toString();
    }

    private String address(String host, String limit) throws Exception {
        scala.Option<InetAddress> address =
            host.equals("*") ? scala.Option.empty() : scala.Option.apply(InetAddress.getByName(host));
        scala.Option<Object> rate = limit.equals("-") ? scala.Option.empty() : scala.Option.apply(Integer.valueOf(limit));
        connections.updateIpConnectionRateQuota(address, rate);
        return "ok";
    }

    private String connect(String host, long nowMs) throws Exception {
        try {
            connections.inc(LISTENER, InetAddress.getByName(host), null);
            return "0";
        } catch (ConnectionThrottledException throttled) {
            return String.valueOf(throttled.throttleTimeMs);
        }
    }

    private static final class SetTime implements Time {
        private volatile long nowMs;

        @Override
        public long milliseconds() {
            return nowMs;
        }

        @Override
        public long nanoseconds() {
            return nowMs * 1_000_000;
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
