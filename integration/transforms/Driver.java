import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TimeZone;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.header.Headers;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.storage.SimpleHeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/**
 * Kafka Connect's own way of a record from bytes to what a sink's put() gets: a line of JSON in, a line of JSON out.
 *
 * In: {"steps": [{"type", "keys", "predicate": {"type", "keys"}, "negate"}], "key_schemas", "value_schemas", "topic",
 * "records": [{"key", "value", "headers": [[name, value]], "timestamp"}]}, bytes as base64.
 * Out: {"refused": class} for a configuration that a transform does not take, else {"records": [...]}, each
 * {"error", "stage", "message"}, {"dropped": true}, or key, value, their schemas, headers, and topic.
 */
public final class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    private record Step(Transformation<SinkRecord> transform, Predicate<SinkRecord> predicate, boolean negate) {
        SinkRecord apply(SinkRecord record) {
            return predicate == null || predicate.test(record) != negate ? transform.apply(record) : record;
        }
    }

    public static void main(String[] arguments) throws Exception {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.write(JSON.writeValueAsString(answer(JSON.readTree(line))));
            out.write('\n');
            out.flush();
        }
    }

    private static ObjectNode answer(JsonNode asked) {
        ObjectNode answer = NODES.objectNode();
        List<Step> steps = new ArrayList<>();
        try {
            for (JsonNode step : asked.get("steps")) {
                steps.add(step(step));
            }
        } catch (Exception | LinkageError refused) {
            return answer.put("refused", refused.getClass().getName()).put("message", refused.getMessage());
        }
        JsonConverter keys = converter(asked.get("key_schemas").asBoolean(), true);
        JsonConverter values = converter(asked.get("value_schemas").asBoolean(), false);
        ArrayNode records = answer.putArray("records");
        long offset = 0;
        for (JsonNode record : asked.get("records")) {
            records.add(outcome(asked.get("topic").asText(), offset++, record, keys, values, steps));
        }
        return answer;
    }

    @SuppressWarnings("unchecked")
    private static Step step(JsonNode asked) throws Exception {
        Transformation<SinkRecord> transform = made(asked.get("type"));
        transform.configure(texts(asked.get("keys")));
        JsonNode chosen = asked.get("predicate");
        if (chosen == null || chosen.isNull()) {
            return new Step(transform, null, false);
        }
        Predicate<SinkRecord> predicate = made(chosen.get("type"));
        predicate.configure(texts(chosen.get("keys")));
        return new Step(transform, predicate, asked.get("negate").asBoolean());
    }

    @SuppressWarnings("unchecked")
    private static <T> T made(JsonNode name) throws Exception {
        return (T) Class.forName(name.asText()).getDeclaredConstructor().newInstance();
    }

    private static Map<String, String> texts(JsonNode keys) {
        Map<String, String> found = new HashMap<>();
        keys.properties().forEach(entry -> found.put(entry.getKey(), entry.getValue().asText()));
        return found;
    }

    private static JsonConverter converter(boolean schemas, boolean isKey) {
        JsonConverter converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", Boolean.toString(schemas)), isKey);
        return converter;
    }

    private static ObjectNode outcome(
            String topic, long offset, JsonNode record, JsonConverter keys, JsonConverter values, List<Step> steps) {
        String stage = "KEY_CONVERTER";
        try {
            SchemaAndValue key = keys.toConnectData(topic, bytes(record.get("key")));
            stage = "VALUE_CONVERTER";
            SchemaAndValue value = values.toConnectData(topic, bytes(record.get("value")));
            stage = "HEADER_CONVERTER";
            Headers headers = headers(topic, record.get("headers"));
            stage = "TRANSFORMATION";
            JsonNode stamp = record.get("timestamp");
            boolean has = stamp != null && !stamp.isNull();
            SinkRecord made = new SinkRecord(topic, 3, key.schema(), key.value(), value.schema(), value.value(), offset,
                has ? Long.valueOf(stamp.asLong()) : null,
                has ? TimestampType.CREATE_TIME : TimestampType.NO_TIMESTAMP_TYPE, headers);
            for (Step step : steps) {
                made = step.apply(made);
                if (made == null) {
                    return NODES.objectNode().put("dropped", true);
                }
            }
            stage = "RENDERING";
            return rendered(made);
        } catch (Exception | StackOverflowError error) {
            return NODES.objectNode().put("error", error.getClass().getName()).put("stage", stage)
                .put("message", error.getMessage());
        }
    }

    private static Headers headers(String topic, JsonNode asked) {
        SimpleHeaderConverter converter = new SimpleHeaderConverter();
        converter.configure(Map.of());
        Headers headers = new ConnectHeaders();
        for (JsonNode header : asked) {
            String name = header.get(0).asText();
            headers.add(name, converter.toConnectHeader(topic, name, bytes(header.get(1))));
        }
        return headers;
    }

    private static byte[] bytes(JsonNode text) {
        return text == null || text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }

    private static ObjectNode rendered(SinkRecord record) {
        ObjectNode out = NODES.objectNode().put("topic", record.topic());
        out.set("key", value(record.key()));
        out.set("key_schema", schema(record.keySchema()));
        out.set("value", value(record.value()));
        out.set("value_schema", schema(record.valueSchema()));
        ArrayNode headers = out.putArray("headers");
        for (Header header : record.headers()) {
            headers.add(NODES.arrayNode().add(header.key()).add(value(header.value())).add(schema(header.schema())));
        }
        return out;
    }

    /** A value with its class: null, or [class, text or parts]. */
    private static JsonNode value(Object value) {
        if (value == null) {
            return NODES.nullNode();
        } else if (value instanceof Struct struct) {
            ArrayNode pairs = NODES.arrayNode();
            for (Field field : struct.schema().fields()) {
                pairs.add(NODES.arrayNode().add(field.name()).add(value(struct.get(field))));
            }
            return tagged("Struct", pairs);
        } else if (value instanceof Map<?, ?> map) {
            ArrayNode pairs = NODES.arrayNode();
            map.forEach((key, one) -> pairs.add(NODES.arrayNode().add(value(key)).add(value(one))));
            return tagged("Map", pairs);
        } else if (value instanceof List<?> list) {
            ArrayNode items = NODES.arrayNode();
            list.forEach(one -> items.add(value(one)));
            return tagged("List", items);
        } else if (value instanceof byte[] bytes) {
            return tagged("Bytes", NODES.textNode(Base64.getEncoder().encodeToString(bytes)));
        } else if (value instanceof ByteBuffer buffer) {
            byte[] bytes = new byte[buffer.remaining()];
            buffer.duplicate().get(bytes);
            return tagged("Bytes", NODES.textNode(Base64.getEncoder().encodeToString(bytes)));
        } else if (value instanceof java.util.Date date) {
            return tagged("Date", NODES.textNode(Long.toString(date.getTime())));
        } else if (value instanceof BigDecimal decimal) {
            return tagged("BigDecimal", NODES.textNode(decimal.unscaledValue() + "/" + decimal.scale()));
        } else if (value instanceof Boolean || value instanceof Number || value instanceof String
                || value instanceof BigInteger) {
            return tagged(value.getClass().getSimpleName(), NODES.textNode(value.toString()));
        }
        throw new IllegalStateException("a value of " + value.getClass());
    }

    private static ArrayNode tagged(String tag, JsonNode content) {
        return NODES.arrayNode().add(tag).add(content);
    }

    private static JsonNode schema(Schema schema) {
        if (schema == null) {
            return NODES.nullNode();
        }
        ObjectNode out = NODES.objectNode().put("type", schema.type().getName()).put("optional", schema.isOptional());
        if (schema.name() != null) {
            out.put("name", schema.name());
        }
        if (schema.parameters() != null && schema.parameters().containsKey("scale")) {
            out.put("scale", schema.parameters().get("scale"));
        }
        switch (schema.type()) {
            case STRUCT -> {
                ArrayNode fields = out.putArray("fields");
                for (Field field : schema.fields()) {
                    fields.add(NODES.arrayNode().add(field.name()).add(schema(field.schema())));
                }
            }
            case ARRAY -> out.set("items", schema(schema.valueSchema()));
            case MAP -> {
                out.set("keys", schema(schema.keySchema()));
                out.set("values", schema(schema.valueSchema()));
            }
            default -> { }
        }
        return out;
    }
}
