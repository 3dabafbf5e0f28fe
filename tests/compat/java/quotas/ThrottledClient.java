import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;

import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A Java client with a quota: writes records one by one, reads as many, and prints what its own metrics say of the
 * longest time that a broker made it wait: one line for the producer, one for the consumer.
 *
 *   bootstrap topic clientId count size
 */
public final class ThrottledClient {
    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        String topic = arguments[1];
        String clientId = arguments[2];
        int count = Integer.parseInt(arguments[3]);
        byte[] value = new byte[Integer.parseInt(arguments[4])];
        Map<String, Object> common = Map.of("bootstrap.servers", bootstrap, "client.id", clientId);
        try (KafkaProducer<byte[], byte[]> producer =
                 new KafkaProducer<>(common, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < count; i++) {
                Future<?> sent = producer.send(new ProducerRecord<>(topic, 0, null, value));
                sent.get();
            }
            print(producer.metrics(), "produce-throttle-time-max");
        }
        try (KafkaConsumer<byte[], byte[]> consumer =
                 new KafkaConsumer<>(common, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            int read = 0;
            while (read < count) {
                read += consumer.poll(Duration.ofSeconds(1)).count();
            }
            print(consumer.metrics(), "fetch-throttle-time-max");
        }
    }

    private static void print(Map<MetricName, ? extends Metric> metrics, String name) {
        metrics.forEach((key, metric) -> {
            if (key.name().equals(name)) {
                System.out.println(name + " " + metric.metricValue());
            }
        });
    }
}
