import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.networknt.schema.JsonSchema;
import com.networknt.schema.JsonSchemaFactory;
import com.networknt.schema.SpecVersion;
import io.apicurio.registry.resolver.ParsedSchemaImpl;
import io.apicurio.registry.resolver.SchemaLookupResult;
import io.apicurio.registry.resolver.SchemaParser;
import io.apicurio.registry.resolver.SchemaResolver;
import io.apicurio.registry.resolver.data.Record;
import io.apicurio.registry.resolver.strategy.ArtifactReference;
import io.apicurio.registry.resolver.strategy.ArtifactReferenceResolverStrategy;
import io.apicurio.registry.rest.client.RegistryClient;
import io.apicurio.registry.serde.jsonschema.JsonSchemaKafkaDeserializer;
import io.apicurio.registry.serde.jsonschema.JsonSchemaKafkaSerializer;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.internals.ByteUtils;

/**
 * Values in the wire format of a schema registry, as the other side of a test. Each line of standard input is one command, each line of standard output its answer:
 *
 * <pre>
 * json read HEX                      the value as JSON
 * json write ID JSON                 the bytes
 * protobuf read HEX                  full name of the message, and its bytes as Java writes them again
 * protobuf write ID INDEXES HEX      the bytes of the message behind the indexes, such as 0,1, framed
 * </pre>
 */
public class Formats {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final HexFormat HEX = HexFormat.of();
  private static final Map<String, String> CONFLUENT = Map.of(
      "apicurio.registry.id-handler", "io.apicurio.registry.serde.Legacy4ByteIdHandler",
      "apicurio.registry.use-id", "contentId",
      "apicurio.registry.headers.enabled", "false",
      "apicurio.registry.serde.validation-enabled", "true");

  private final String registry;

  private Formats(String registry) {
    this.registry = registry;
  }

  public static void main(String[] arguments) throws Exception {
    Formats formats = new Formats(arguments[0]);
    for (String line : new String(System.in.readAllBytes(), StandardCharsets.UTF_8).split("\n")) {
      String[] words = line.split(" ");
      System.out.println(switch (words[0] + " " + words[1]) {
        case "json read" -> formats.readJson(HEX.parseHex(words[2]));
        case "json write" -> HEX.formatHex(formats.writeJson(Long.parseLong(words[2]), words[3]));
        case "protobuf read" -> formats.readProtobuf(HEX.parseHex(words[2]));
        case "protobuf write" ->
            HEX.formatHex(formats.writeProtobuf(Integer.parseInt(words[2]), words[3], HEX.parseHex(words[4])));
        default -> throw new IllegalArgumentException(line);
      });
    }
  }

  private String readJson(byte[] bytes) throws Exception {
    try (JsonSchemaKafkaDeserializer<JsonNode> deserializer = new JsonSchemaKafkaDeserializer<>(new Resolver(0))) {
      Map<String, Object> settings = new java.util.HashMap<>(CONFLUENT);
      settings.put("apicurio.registry.deserializer.value.return-class", JsonNode.class.getName());
      deserializer.configure(settings, false);
      return deserializer.deserialize("orders", bytes).toString();
    }
  }

  private byte[] writeJson(long id, String json) throws Exception {
    try (JsonSchemaKafkaSerializer<JsonNode> serializer = new JsonSchemaKafkaSerializer<>(new Resolver(id))) {
      serializer.configure(CONFLUENT, false);
      return serializer.serialize("orders", MAPPER.readTree(json));
    }
  }

  private String readProtobuf(byte[] bytes) throws Exception {
    ByteBuffer buffer = ByteBuffer.wrap(bytes);
    if (buffer.get() != 0) throw new IllegalArgumentException("no magic byte");
    int id = buffer.getInt();
    int count = ByteUtils.readVarint(buffer);
    int[] indexes = new int[Math.max(1, count)];
    for (int i = 0; i < count; i++) indexes[i] = ByteUtils.readVarint(buffer);
    Descriptor descriptor = descriptorOf(id, indexes);
    byte[] body = new byte[buffer.remaining()];
    buffer.get(body);
    return descriptor.getFullName() + " " + HEX.formatHex(DynamicMessage.parseFrom(descriptor, body).toByteArray());
  }

  private byte[] writeProtobuf(int id, String path, byte[] body) throws Exception {
    int[] indexes = Arrays.stream(path.split(",")).mapToInt(Integer::parseInt).toArray();
    DynamicMessage message = DynamicMessage.parseFrom(descriptorOf(id, indexes), body);
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeByte(0);
    out.writeInt(id);
    if (path.equals("0")) {
      out.writeByte(0);
    } else {
      ByteUtils.writeVarint(indexes.length, out);
      for (int index : indexes) ByteUtils.writeVarint(index, out);
    }
    out.write(message.toByteArray());
    return bytes.toByteArray();
  }

  private Descriptor descriptorOf(int id, int[] indexes) throws Exception {
    FileDescriptor file = fileOf(schemaOf("/schemas/ids/" + id));
    Descriptor descriptor = file.getMessageTypes().get(indexes[0]);
    for (int i = 1; i < indexes.length; i++) {
      List<Descriptor> nested =
          descriptor.getNestedTypes().stream().filter(type -> !type.getOptions().getMapEntry()).toList();
      descriptor = nested.get(indexes[i]);
    }
    return descriptor;
  }

  /** The file, with the files that it imports. */
  private FileDescriptor fileOf(JsonNode schema) throws Exception {
    FileDescriptorProto file = FileDescriptorProto.parseFrom(Base64.getDecoder().decode(schema.get("schema").asText()));
    List<FileDescriptor> imports = new java.util.ArrayList<>();
    for (JsonNode reference : schema.path("references")) {
      imports.add(fileOf(schemaOf(
          "/subjects/" + java.net.URLEncoder.encode(reference.get("subject").asText(), StandardCharsets.UTF_8)
              + "/versions/" + reference.get("version").asInt())));
    }
    imports.add(com.google.protobuf.TimestampProto.getDescriptor());
    return FileDescriptor.buildFrom(file, imports.toArray(new FileDescriptor[0]));
  }

  private JsonNode schemaOf(String path) throws Exception {
    HttpResponse<String> response = HttpClient.newHttpClient()
        .send(HttpRequest.newBuilder(URI.create(registry + path)).build(), HttpResponse.BodyHandlers.ofString());
    if (response.statusCode() != 200) throw new IllegalStateException(path + ": " + response.body());
    return MAPPER.readTree(response.body());
  }

  /** Schemas from Confluent's REST interface, which Apicurio's own resolver does not speak. */
  private class Resolver implements SchemaResolver<JsonSchema, JsonNode> {
    private final long writerId;

    Resolver(long writerId) {
      this.writerId = writerId;
    }

    @Override
    public void configure(Map<String, ?> settings, SchemaParser<JsonSchema, JsonNode> parser) {}

    @Override
    public void setClient(RegistryClient client) {}

    @Override
    public void setArtifactResolverStrategy(ArtifactReferenceResolverStrategy<JsonSchema, JsonNode> strategy) {}

    @Override
    public SchemaParser<JsonSchema, JsonNode> getSchemaParser() {
      return null;
    }

    @Override
    public SchemaLookupResult<JsonSchema> resolveSchema(Record<JsonNode> record) {
      return lookUp(writerId);
    }

    @Override
    public SchemaLookupResult<JsonSchema> resolveSchemaByArtifactReference(ArtifactReference reference) {
      return lookUp(reference.getContentId());
    }

    private SchemaLookupResult<JsonSchema> lookUp(long id) {
      try {
        String text = schemaOf("/schemas/ids/" + id).get("schema").asText();
        JsonSchema schema = JsonSchemaFactory.getInstance(SpecVersion.VersionFlag.V7).getSchema(text);
        return SchemaLookupResult.<JsonSchema>builder()
            .contentId(id)
            .parsedSchema(new ParsedSchemaImpl<JsonSchema>().setParsedSchema(schema).setRawSchema(text.getBytes()))
            .build();
      } catch (Exception failure) {
        throw new IllegalStateException(failure);
      }
    }

    @Override
    public void reset() {}

    @Override
    public void close() {}
  }
}
