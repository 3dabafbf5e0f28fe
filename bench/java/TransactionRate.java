import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Transactions of one record each, one after the other, for a number of seconds after a second that does not count.
 *
 * Arguments: bootstrap, topic, transactional id, seconds. Prints how many were committed in a second.
 */
public final class TransactionRate {
    private static final byte[] VALUE = new byte[100];

    public static void main(String[] arguments) {
        Properties given = new Properties();
        given.put("bootstrap.servers", arguments[0]);
        given.put("transactional.id", arguments[2]);
        given.put("linger.ms", "0");
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(given, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            run(producer, arguments[1], 1.0);
            System.out.println(run(producer, arguments[1], Double.parseDouble(arguments[3])));
        }
    }

    private static double run(KafkaProducer<byte[], byte[]> producer, String topic, double seconds) {
        long started = System.nanoTime();
        int count = 0;
        while (System.nanoTime() - started < seconds * 1e9) {
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, null, VALUE));
            producer.commitTransaction();
            count++;
        }
        return count / ((System.nanoTime() - started) / 1e9);
    }
}
