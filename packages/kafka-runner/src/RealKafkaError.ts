/** Everything that can keep a real Kafka from running. */
import { Schema } from "effect"

/** Java or Maven is not on this machine. */
export class KafkaUnavailable extends Schema.TaggedError<KafkaUnavailable>()("KafkaUnavailable", {
  missing: Schema.String
}) {
  override get message(): string {
    return `No real Kafka here (${this.missing}): install Java 17+ and Maven, or set KAFKA_BROKERS=host:port[,host:port].`
  }
}

/** Maven could not fetch the broker's jars. */
export class DownloadFailed extends Schema.TaggedError<DownloadFailed>()("DownloadFailed", {
  detail: Schema.String
}) {
  override get message(): string {
    return `Kafka's jars could not be fetched by Maven: ${this.detail}`
  }
}

/** The options contradict each other. */
export class InvalidOptions extends Schema.TaggedError<InvalidOptions>()("InvalidOptions", {
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/** A preparation (certificate, data folder) or the broker itself failed; `log` is the tail of its output. */
export class StartFailed extends Schema.TaggedError<StartFailed>()("StartFailed", {
  detail: Schema.String,
  log: Schema.String
}) {
  override get message(): string {
    return `Kafka did not start: ${this.detail}\n${this.log}`
  }
}

export type RealKafkaError = KafkaUnavailable | DownloadFailed | InvalidOptions | StartFailed
