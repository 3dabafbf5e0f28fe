import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Copies records of one topic to another, each to the partition that it came from, some at a time: they and the offsets behind
 * them are one transaction. It runs until it is ended; what cannot be mended ends it. A line is printed whenever a transaction
 * was committed.
 *
 * Arguments: bootstrap, topic to read, topic to write, group, transactional id, group protocol.
 */
public final class CopyingJob {
    private final String target;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final KafkaProducer<byte[], byte[]> producer;

    private CopyingJob(String[] arguments) {
        this.target = arguments[2];
        this.consumer = new KafkaConsumer<>(reading(arguments), new ByteArrayDeserializer(), new ByteArrayDeserializer());
        this.producer = new KafkaProducer<>(writing(arguments), new ByteArraySerializer(), new ByteArraySerializer());
        consumer.subscribe(List.of(arguments[1]));
    }

    public static void main(String[] arguments) {
        CopyingJob job = new CopyingJob(arguments);
        job.producer.initTransactions();
        while (true) {
            job.copy();
        }
    }

    private static Properties common(String[] arguments) {
        Properties given = new Properties();
        given.put("bootstrap.servers", arguments[0]);
        given.put("reconnect.backoff.ms", "20");
        given.put("reconnect.backoff.max.ms", "200");
        return given;
    }

    private static Properties reading(String[] arguments) {
        Properties given = common(arguments);
        given.put("group.id", arguments[3]);
        given.put("group.protocol", arguments[5]);
        if (arguments[5].equals("classic")) {
            given.put("session.timeout.ms", "2000");
            given.put("heartbeat.interval.ms", "200");
        }
        given.put("auto.offset.reset", "earliest");
        given.put("enable.auto.commit", "false");
        given.put("isolation.level", "read_committed");
        given.put("fetch.max.wait.ms", "20");
        given.put("max.poll.records", "100");
        return given;
    }

    private static Properties writing(String[] arguments) {
        Properties given = common(arguments);
        given.put("transactional.id", arguments[4]);
        given.put("transaction.timeout.ms", "10000");
        given.put("max.block.ms", "20000");
        return given;
    }

    private void copy() {
        ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
        if (records.isEmpty()) {
            return;
        }
        try {
            producer.beginTransaction();
            Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
            for (ConsumerRecord<byte[], byte[]> record : records) {
                producer.send(new ProducerRecord<>(target, record.partition(), null, record.value()));
                TopicPartition place = new TopicPartition(record.topic(), record.partition());
                ends.put(place, new OffsetAndMetadata(record.offset() + 1));
            }
            producer.sendOffsetsToTransaction(ends, consumer.groupMetadata());
            producer.commitTransaction();
            System.out.println(records.count());
            System.out.flush();
        } catch (KafkaException problem) {
            startOver();
        }
    }

    /** Nothing was copied: read again from the last committed offsets. A producer that cannot abort is of no use any more. */
    private void startOver() {
        producer.abortTransaction();
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
        for (TopicPartition place : consumer.assignment()) {
            OffsetAndMetadata found = committed.get(place);
            if (found == null) {
                consumer.seekToBeginning(List.of(place));
            } else {
                consumer.seek(place, found);
            }
        }
    }
}
