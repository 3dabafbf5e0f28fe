import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.ApiMessageType.ListenerType;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/**
 * Answers what Apache Kafka's own classes make of a message: one line in, one line out, fields separated by tabs.
 *
 * read  NAME VERSION BYTES        the message as JSON, and the bytes it is written as again
 * write NAME VERSION JSON         the bytes of a message given as JSON
 * carry NAME FROM TO JSON         the bytes, in version TO, of a message that was given in version FROM
 * apis, errors                    what the enums say
 *
 * An answer starts with "ok", or with the kind of refusal: "unsupported", "null", "error".
 */
public final class CodecOracle {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final Base64.Encoder BASE64 = Base64.getEncoder();

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
        } catch (UnsupportedVersionException refusal) {
            return "unsupported\t" + refusal.getMessage();
        } catch (NullPointerException refusal) {
            return "null\t" + refusal.getMessage();
        } catch (Exception refusal) {
            return "error\t" + refusal.toString().replace('\n', ' ').replace('\t', ' ');
        }
    }

    private static String obey(String[] words) throws Exception {
        switch (words[0]) {
            case "read": {
                short version = Short.parseShort(words[2]);
                ByteBuffer buffer = ByteBuffer.wrap(Base64.getDecoder().decode(words[3]));
                Message message = newMessage(words[1]);
                message.read(new ByteBufferAccessor(buffer), version);
                if (buffer.hasRemaining()) throw new IllegalStateException(buffer.remaining() + " bytes are left");
                return bytesOf(message, version) + "\t" + toJson(words[1], message, version);
            }
            case "write":
                return bytesOf(fromJson(words[1], words[2], words[3]), Short.parseShort(words[2]));
            case "carry":
                return bytesOf(fromJson(words[1], words[2], words[4]), Short.parseShort(words[3]));
            case "apis":
                return apis().toString();
            case "errors":
                return errors().toString();
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static Message newMessage(String name) throws ReflectiveOperationException {
        return (Message) generated(name, "").getConstructor().newInstance();
    }

    /** Requests, responses and headers are called Data; what is none of these has its plain name. */
    private static Class<?> generated(String name, String suffix) throws ClassNotFoundException {
        boolean plain = !name.endsWith("Request") && !name.endsWith("Response") && !name.endsWith("Header");
        return Class.forName("org.apache.kafka.common.message." + name + (plain ? "" : "Data") + suffix);
    }

    private static Message fromJson(String name, String version, String json) throws Exception {
        Method read = generated(name, "JsonConverter").getMethod("read", JsonNode.class, short.class);
        return (Message) call(read, MAPPER.readTree(json), Short.parseShort(version));
    }

    private static JsonNode toJson(String name, Message message, short version) throws Exception {
        Class<?> converter = generated(name, "JsonConverter");
        return (JsonNode) call(converter.getMethod("write", message.getClass(), short.class), message, version);
    }

    private static Object call(Method method, Object... arguments) throws Exception {
        try {
            return method.invoke(null, arguments);
        } catch (InvocationTargetException wrapped) {
            if (wrapped.getCause() instanceof Exception) throw (Exception) wrapped.getCause();
            throw wrapped;
        }
    }

    private static String bytesOf(Message message, short version) {
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return BASE64.encodeToString(bytes);
    }

    private static ArrayNode apis() {
        ArrayNode all = MAPPER.createArrayNode();
        for (ApiKeys key : ApiKeys.values()) {
            if (!key.hasValidVersion()) continue;
            ObjectNode api = all.addObject();
            ApiMessageType type = key.messageType;
            api.put("key", key.id).put("name", key.name());
            api.put("broker", key.inScope(ListenerType.BROKER));
            api.put("first", key.oldestVersion()).put("last", key.latestVersion(false));
            ArrayNode headers = api.putArray("headers");
            for (short version = key.oldestVersion(); version <= key.latestVersion(false); version++) {
                headers.addArray().add(type.requestHeaderVersion(version)).add(type.responseHeaderVersion(version));
            }
        }
        return all;
    }

    private static ArrayNode errors() {
        ArrayNode all = MAPPER.createArrayNode();
        for (Errors error : Errors.values()) {
            boolean retriable = error.exception() instanceof RetriableException;
            all.addObject().put("code", error.code()).put("name", error.name()).put("retriable", retriable);
        }
        return all;
    }
}
