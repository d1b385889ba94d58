import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a consumer group, as a program that uses Kafka's own client: it commits what one poll brought before it polls again, and leaves the group when its standard
 * input ends.
 *
 * <pre>
 * GroupMember BOOTSTRAP TOPIC,TOPIC GROUP property=value...
 * </pre>
 *
 * Lines of its output: {@code Assigned topic/partition,...} after each rebalance, {@code Record topic partition offset millis value}, and {@code Refused} for a commit that
 * came too late.
 */
public class GroupMember {
  private static final PrintStream OUT =
      new PrintStream(new BufferedOutputStream(System.out), false, StandardCharsets.UTF_8);

  public static void main(String[] arguments) {
    Map<String, Object> settings = new HashMap<>();
    settings.put("bootstrap.servers", arguments[0]);
    settings.put("group.id", arguments[2]);
    settings.put("enable.auto.commit", "false");
    settings.put("auto.offset.reset", "earliest");
    for (int i = 3; i < arguments.length; i++) {
      String[] property = arguments[i].split("=", 2);
      settings.put(property[0], property[1]);
    }
    StringDeserializer text = new StringDeserializer();
    try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, text, text)) {
      consumer.subscribe(List.of(arguments[1].split(",")), reporting(consumer));
      wakeUpAtEndOfInput(consumer);
      while (true) handle(consumer, consumer.poll(Duration.ofMillis(100)));
    } catch (WakeupException end) {
      OUT.flush();
    } catch (KafkaException failure) {
      // Some have no stack trace, and Java's launcher fails over that.
      System.err.println(failure);
      System.exit(1);
    }
  }

  private static void handle(KafkaConsumer<String, String> consumer, ConsumerRecords<String, String> records) {
    for (ConsumerRecord<String, String> record : records) {
      String at = record.topic() + " " + record.partition() + " " + record.offset();
      OUT.println("Record " + at + " " + System.currentTimeMillis() + " " + record.value());
    }
    OUT.flush();
    if (!records.isEmpty()) commit(consumer);
  }

  /** While the group rebalances a commit may be refused. The next one covers it, or the next owner handles these records again. */
  private static void commit(KafkaConsumer<?, ?> consumer) {
    try {
      consumer.commitSync();
    } catch (RebalanceInProgressException | CommitFailedException refused) {
      OUT.println("Refused");
    }
  }

  private static void wakeUpAtEndOfInput(KafkaConsumer<?, ?> consumer) {
    Thread waiting = new Thread(() -> {
      try {
        while (System.in.read() >= 0) continue;
      } catch (IOException closed) {
        // The end, too.
      }
      consumer.wakeup();
    });
    waiting.setDaemon(true);
    waiting.start();
  }

  private static ConsumerRebalanceListener reporting(KafkaConsumer<?, ?> consumer) {
    return new ConsumerRebalanceListener() {
      @Override
      public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        report(consumer.assignment());
      }

      @Override
      public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        commit(consumer);
        report(consumer.assignment().stream().filter(at -> !partitions.contains(at)).toList());
      }
    };
  }

  private static void report(Collection<TopicPartition> owned) {
    OUT.println("Assigned " + owned.stream().map(at -> at.topic() + "/" + at.partition()).sorted().collect(Collectors.joining(",")));
    OUT.flush();
  }
}
