import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

/**
 * Kafka's command line tools, one after the other in one process: a command is a line of fields between tabs, the class first.
 *
 * An answer is the tool's exit code, a tab and a number of lines, then these lines: all that the tool printed.
 */
public final class ToolHost {
    private static final class Ended extends RuntimeException {
        private static final long serialVersionUID = 1L;
        private final int code;

        Ended(int code) {
            this.code = code;
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        Exit.setExitProcedure((code, message) -> {
            throw new Ended(code);
        });
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            PrintStream capture = new PrintStream(printed, true, StandardCharsets.UTF_8);
            System.setOut(capture);
            System.setErr(capture);
            int code = run(line.split("\t", -1));
            capture.flush();
            String[] lines = printed.toString(StandardCharsets.UTF_8).split("\n", -1);
            answers.println(code + "\t" + lines.length);
            for (String one : lines) {
                answers.println(one);
            }
            answers.flush();
        }
    }

    private static int run(String[] command) throws Exception {
        String[] arguments = Arrays.copyOfRange(command, 1, command.length);
        try {
            Class.forName(command[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException problem) {
            if (problem.getCause() instanceof Ended) {
                return ((Ended) problem.getCause()).code;
            }
            problem.getCause().printStackTrace(System.out);
            return -1;
        }
    }
}
