import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * One transactional producer, driven by lines on standard input: fields between tabs, the first being the call.
 *
 * Every call is answered by one line, "ok" or what went wrong; the first line says how the initialisation went.
 * Arguments: bootstrap, transactional id, timeout of transactions in milliseconds.
 */
public final class TransactionDriver {
    private final String bootstrap;
    private final KafkaProducer<String, String> producer;

    private TransactionDriver(String[] arguments) {
        this.bootstrap = arguments[0];
        Properties given = new Properties();
        given.put("bootstrap.servers", bootstrap);
        given.put("transactional.id", arguments[1]);
        given.put("transaction.timeout.ms", arguments[2]);
        given.put("max.block.ms", "20000");
        given.put("linger.ms", "0");
        this.producer = new KafkaProducer<>(given, new StringSerializer(), new StringSerializer());
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream output = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        TransactionDriver driver = new TransactionDriver(arguments);
        output.println(driver.answer(new String[] {"init"}));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            output.println(driver.answer(line.split("\t", -1)));
        }
    }

    private String answer(String[] request) {
        try {
            call(request);
            return "ok";
        } catch (Exception problem) {
            Throwable cause = problem instanceof ExecutionException ? problem.getCause() : problem;
            return String.valueOf(cause).replaceAll("\\s+", " ");
        }
    }

    /** The group of a consumer that never joined: its offsets are anybody's. */
    private void commitOffset(String group, Map<TopicPartition, OffsetAndMetadata> offsets) {
        Properties given = new Properties();
        given.put("bootstrap.servers", bootstrap);
        given.put("group.id", group);
        StringDeserializer text = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(given, text, text)) {
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        }
    }

    private void call(String[] request) throws Exception {
        switch (request[0]) {
            case "init":
                producer.initTransactions();
                break;
            case "begin":
                producer.beginTransaction();
                break;
            case "send":
                producer.send(new ProducerRecord<>(request[1], 0, null, request[2])).get();
                break;
            case "offset":
                TopicPartition place = new TopicPartition(request[2], 0);
                OffsetAndMetadata offset = new OffsetAndMetadata(Long.parseLong(request[3]));
                commitOffset(request[1], Map.of(place, offset));
                break;
            case "commit":
                producer.commitTransaction();
                break;
            case "abort":
                producer.abortTransaction();
                break;
            default:
                throw new IllegalArgumentException("unknown call " + request[0]);
        }
    }
}
