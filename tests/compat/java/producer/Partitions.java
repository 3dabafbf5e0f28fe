import java.util.HexFormat;
import java.util.Scanner;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;

/** Reads lines of "count key-in-hex" and prints the partition that Kafka's own client picks for the key. */
public class Partitions {
    public static void main(String[] arguments) {
        try (Scanner lines = new Scanner(System.in)) {
            while (lines.hasNextLine()) {
                String[] words = lines.nextLine().split(" ", -1);
                byte[] key = HexFormat.of().parseHex(words[1]);
                System.out.println(BuiltInPartitioner.partitionForKey(key, Integer.parseInt(words[0])));
            }
        }
    }
}
