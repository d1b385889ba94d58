import java.io.BufferedOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own clients, as the other side of a test: they write lines of text as records and read records as lines.
 *
 * A line is {@code partition key value header=value,header=value}: keys, values and header values in hexadecimal digits, {@code -} for null; header names
 * as they are.
 *
 * <pre>
 * Records write BOOTSTRAP TOPIC property=value...   lines from standard input
 * Records read BOOTSTRAP TOPIC PARTITIONS COUNT     lines to standard output, each partition in order
 * </pre>
 */
public class Records {
  public static void main(String[] arguments) throws Exception {
    if (arguments[0].equals("write")) {
      write(arguments);
    } else {
      read(arguments[1], arguments[2], Integer.parseInt(arguments[3]), Integer.parseInt(arguments[4]));
    }
  }

  private static void write(String[] arguments) throws Exception {
    Map<String, Object> settings = new java.util.HashMap<>(Map.of("bootstrap.servers", arguments[1]));
    for (int i = 3; i < arguments.length; i++) {
      String[] property = arguments[i].split("=", 2);
      settings.put(property[0], property[1]);
    }
    ByteArraySerializer bytes = new ByteArraySerializer();
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, bytes, bytes)) {
      for (String line : new String(System.in.readAllBytes(), StandardCharsets.UTF_8).split("\n")) {
        String[] parts = line.split(" ", 4);
        ProducerRecord<byte[], byte[]> record =
            new ProducerRecord<>(arguments[2], Integer.parseInt(parts[0]), bytesOf(parts[1]), bytesOf(parts[2]));
        for (String header : parts[3].isEmpty() ? new String[0] : parts[3].split(",")) {
          String[] pair = header.split("=", 2);
          record.headers().add(pair[0], bytesOf(pair[1]));
        }
        producer.send(record, (metadata, failure) -> {
          if (failure == null) return;
          failure.printStackTrace();
          System.exit(1);
        });
      }
      producer.flush();
    }
  }

  private static void read(String bootstrap, String topic, int partitions, int count) throws Exception {
    PrintStream out = new PrintStream(new BufferedOutputStream(System.out), false, StandardCharsets.UTF_8);
    ByteArrayDeserializer bytes = new ByteArrayDeserializer();
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(Map.of("bootstrap.servers", bootstrap), bytes, bytes)) {
      List<TopicPartition> all =
          java.util.stream.IntStream.range(0, partitions).mapToObj(i -> new TopicPartition(topic, i)).toList();
      consumer.assign(all);
      consumer.seekToBeginning(all);
      for (int read = 0; read < count; ) {
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
          out.println(lineOf(record));
          read++;
        }
      }
    }
    out.flush();
  }

  private static String lineOf(ConsumerRecord<byte[], byte[]> record) {
    StringBuilder headers = new StringBuilder();
    for (Header header : record.headers()) {
      if (!headers.isEmpty()) headers.append(',');
      headers.append(header.key()).append('=').append(textOf(header.value()));
    }
    return record.partition() + " " + textOf(record.key()) + " " + textOf(record.value()) + " " + headers;
  }

  private static byte[] bytesOf(String text) {
    return text.equals("-") ? null : HexFormat.of().parseHex(text);
  }

  private static String textOf(byte[] bytes) {
    return bytes == null ? "-" : HexFormat.of().formatHex(bytes);
  }
}
