import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.Base64;

import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/**
 * Tells how Apache Kafka refuses a whole request. The argument is the number of an error; each line in has the key and
 * the version of an API and a request in Base64, each line out the answer.
 */
public final class ErrorOracle {
    public static void main(String[] arguments) throws IOException {
        Errors error = Errors.forCode(Short.parseShort(arguments[0]));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            System.out.println(refuse(Integer.parseInt(words[0]), Short.parseShort(words[1]), words[2], error));
        }
    }

    private static String refuse(int key, short version, String body, Errors error) {
        ByteBuffer bytes = ByteBuffer.wrap(Base64.getDecoder().decode(body));
        ApiKeys api = ApiKeys.forId(key);
        AbstractRequest request = AbstractRequest.parseRequest(api, version, new ByteBufferAccessor(bytes)).request;
        AbstractResponse response = request.getErrorResponse(0, error.exception());
        ByteBuffer written = MessageUtil.toByteBufferAccessor(response.data(), version).buffer();
        byte[] answer = new byte[written.remaining()];
        written.get(answer);
        return Base64.getEncoder().encodeToString(answer);
    }
}
