/**
 * The texts that a setting may have, once, for every setting that is one of several texts. Code (`Binding.make`, `RetryPolicy`, `CircuitBreaker`, `DeadLetter`, the Kafka
 * adapter) and files (`@eventbus/config`) both read them here, so that both refuse the same texts.
 */

/** Codecs of batches of records. */
export const compression = ["none", "gzip", "snappy", "lz4", "zstd"] as const

/** Which records of transactions a reader gets. */
export const isolationLevel = ["read_committed", "read_uncommitted"] as const

/** Settings of a binding, which `BindingOptions.Settings` explains. */
export const binding = {
  listenerType: ["SINGLE", "BATCH"],
  batchFailureStrategy: ["SEEK_TO_FAILED", "DLQ_AND_CONTINUE"],
  ackMode: ["MANUAL", "MANUAL_IMMEDIATE"],
  autoOffsetReset: ["earliest", "latest"],
  isolationLevel,
  processingOrder: ["partition", "key", "unordered"],
  copyCompression: ["source", ...compression],
  orderingMode: ["RELAXED_IN_RETRY", "STRICT", "PER_KEY"],
  onExhausted: ["dead-letter", "halt"],
  missingTopics: ["create", "wait", "require"],
  groupProtocol: ["classic", "consumer"]
} as const

/** Settings of the order per key, which `BindingOptions.PerKey` explains. */
export const perKey = { onDeadLetter: ["continue", "hold"] } as const

/** Settings of the retry policy, which `RetryPolicy.TieredOptions` explains. */
export const retry = { equalDelays: ["refuse", "share"], consumer: ["shared", "separate"] } as const

/** Settings of the circuit breaker, which `CircuitBreaker.Options` explains. */
export const circuitBreaker = { slidingWindowType: ["count", "time"] } as const

/** Settings of dead letters, which `DeadLetter.HeaderSets` explains. */
export const deadLetter = { spring: ["retry-topic", "plain"] } as const

/** Settings of a fleet, which `Fleet.Settings` explains. */
export const fleet = { onControlUnavailable: ["run", "hold"] } as const

/** Settings of the audit log, which `Audit.Settings` explains. */
export const audit = { whenUnwritable: ["refuse", "proceed"] } as const

/** Connections to a cluster: those of kafkajs (`KafkaJs.layer`), or those of `@eventbus/kafka` (`Kafka.layer`). */
export const transport = ["kafkajs", "kafka"] as const

/** Mechanisms of SASL, which the cluster's settings explain. */
export const saslMechanism = ["plain", "scram-sha-256", "scram-sha-512", "oauthbearer"] as const

/** Settings of a producer, which `Broker.ProducerOptions` explains. */
export const producer = { acks: ["all", "leader"], compression } as const

/** The texts in words: `"count" or "time"`. */
export const inWords = (texts: ReadonlyArray<string>): string => {
  const quoted = texts.map((text) => JSON.stringify(text))
  return quoted.length < 2 ? quoted.join("") : `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`
}
