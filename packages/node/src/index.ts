/**
 * Everything that a program without Effect imports: the bus, its consumers, rules for errors, serdes, topics.
 */
export { EventBusError, LetterTransform, Serde, TypeId } from "@eventbus/core"
export type { BusHealth } from "./BusHealth.ts"
export type { BusOutbox, OutboxReason } from "./BusOutbox.ts"
export { batchConsumer, type Consumer, consumer, transactionalConsumer } from "./Consumer.ts"
export type {
  BatchConsumerOptions,
  CircuitBreakerOptions,
  CommonOptions,
  ConsumerOptions,
  DeadLetterOptions,
  HandlerContext,
  KafkaBatch,
  KafkaDelivery,
  PromiseInterceptor,
  Readable,
  RetryOptions,
  Settles,
  SharedSettings,
  TierOptions,
  TransactionalConsumerOptions,
  TransactionalSettings,
  TransactionContext
} from "./ConsumerOptions.ts"
export {
  after,
  deadLetter,
  type ErrorRule,
  nextTier,
  on,
  pause,
  retry,
  retryThenTier,
  skip,
  tier
} from "./ErrorRule.ts"
export { createEventBus, type EventBus, type PublishOptions } from "./EventBus.ts"
export { EventBusNotRunning, NotReady, StartInterrupted } from "./EventBusErrors.ts"
export type { EventBusOptions, LogEntry } from "./EventBusOptions.ts"
export type {
  KafkaConnection,
  KafkaOptions,
  ProducerOptions,
  SaslClientCredentialsOptions,
  SaslPasswordOptions,
  SaslTokenOptions,
  SecretValue,
  SslOptions,
  TokenValue
} from "./KafkaOptions.ts"
export type { DurationValue, Plain, Promised } from "./PlainValues.ts"
export { standardSchema } from "./StandardSchemaSerde.ts"
export { defineTopic, type Message, type TextOrBytes, type Topic } from "./Topic.ts"
export type { TransactionProducer } from "./TransactionProducer.ts"
