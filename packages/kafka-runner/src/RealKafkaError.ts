/** The reasons why a real Kafka does not run. */
import { Schema } from "effect"

/** This machine lacks Java or Maven. */
export class KafkaUnavailable extends Schema.TaggedError<KafkaUnavailable>()("KafkaUnavailable", {
  /** The missing tool or version. */
  missing: Schema.String
}) {
  override get message(): string {
    return `No real Kafka here (${this.missing}): install Java 17+ and Maven, or set KAFKA_BROKERS=host:port[,host:port].`
  }
}

/** Maven could not download the broker's jars. */
export class DownloadFailed extends Schema.TaggedError<DownloadFailed>()("DownloadFailed", {
  /** Maven's output. */
  detail: Schema.String
}) {
  override get message(): string {
    return `Kafka's jars could not be fetched by Maven: ${this.detail}`
  }
}

/** The options contradict each other. */
export class InvalidOptions extends Schema.TaggedError<InvalidOptions>()("InvalidOptions", {
  /** The options and the way out. */
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/** A preparation (certificate, data folder) or a broker failed. */
export class StartFailed extends Schema.TaggedError<StartFailed>()("StartFailed", {
  /** The step that failed. */
  detail: Schema.String,
  /** The last lines of its output. */
  log: Schema.String
}) {
  override get message(): string {
    return `Kafka did not start: ${this.detail}\n${this.log}`
  }
}

/** Any of these reasons. */
export type RealKafkaError = KafkaUnavailable | DownloadFailed | InvalidOptions | StartFailed
