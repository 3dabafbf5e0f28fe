import java.util.ArrayList;
import java.util.List;

import kafka.admin.ConfigCommand;

/** Kafka's ConfigCommand, several times in one process: the commands are separated by a single comma. */
public final class ConfigCommands {
    public static void main(String[] arguments) {
        List<String> command = new ArrayList<>();
        for (String argument : arguments) {
            if (argument.equals(",")) {
                run(command);
                command = new ArrayList<>();
            } else {
                command.add(argument);
            }
        }
        run(command);
    }

    private static void run(List<String> command) {
        System.out.println("> " + String.join(" ", command.subList(2, command.size())));
        ConfigCommand.main(command.toArray(new String[0]));
    }
}
