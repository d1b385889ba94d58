/** Runs a consumer as a binding of the connector. */
import * as Binding from "@eventbus/core/Binding"
import type { CommonSettings } from "@eventbus/core/BindingOptions"
import type { ExceptionClassifier } from "@eventbus/core/Classifier"
import * as DeadLetter from "@eventbus/core/DeadLetter"
import type { Batch, Delivery } from "@eventbus/core/Delivery"
import * as Failures from "@eventbus/core/Failures"
import * as Route from "@eventbus/core/Route"
import * as Serde from "@eventbus/core/Serde"
import * as Effect from "effect/Effect"
import type { MessageConsumer } from "../../ConsumerDescription.ts"
import type { Complete } from "../../KafkaSettings.ts"
import type { ConsumerObserver } from "../../MessageBroker.ts"
import * as MessageRetry from "../../MessageRetry.ts"
import * as KafkaMessage from "./kafkaMessage.ts"
import * as KafkaRetry from "./kafkaRetry.ts"

type OfRecord<T> = Delivery<string | null, T>

export const bindingOf = <T, E, R>(
  consumer: MessageConsumer<T, E, R>,
  settings: Complete,
  observer: ConsumerObserver
): Binding.Binding<R> => {
  const { name, handler, groupId } = consumer
  const retry = consumer.retry ?? settings.retry
  const topics = KafkaMessage.topicsOf(consumer.topics, groupId)
  const read = KafkaMessage.reader(groupId, topics, retry.retryTopicsEnabled ? attemptInTiers : attemptsInPlace())
  const typed = {
    key: Serde.nullable(Serde.string),
    value: topics.payload,
    onError: (error: E) => routeOf(mayCure(consumer, retry, error)),
    deadLetter: deadLetters(observer)
  }
  const common = commonSettings(consumer, settings, retry)
  if (handler._tag === "Single") {
    const { handle } = handler
    return Binding.make(name, { ...typed, ...common, handler: (delivery: OfRecord<T>) => handle(read(delivery)) })
  }
  const { handle, maxMessages = settings.consumer.maxPollRecords } = handler
  return Binding.makeBatch(name, {
    ...{ ...typed, ...common },
    maxPollRecords: maxMessages,
    handleBatch: ({ deliveries }: Batch<string | null, T>) => {
      const [first, ...others] = deliveries.map(read)
      return first === undefined ? Effect.void : handle([first, ...others])
    }
  })
}

const commonSettings = (
  consumer: Pick<MessageConsumer<unknown>, "concurrency" | "shutdownTimeout" | "groupId" | "naming"> & {
    readonly topics: ReadonlyArray<{ readonly name: string }>
  },
  settings: Complete,
  retry: MessageRetry.MessageRetry
): CommonSettings => {
  const { sessionTimeout, heartbeatInterval, autoOffsetReset } = settings.consumer
  const concurrency = consumer.concurrency ?? settings.consumer.concurrency
  return {
    ...{ groupId: consumer.groupId, cluster: settings.cluster, sessionTimeout, heartbeatInterval, autoOffsetReset },
    topic: consumer.topics.map((topic) => topic.name),
    // A member has one handler at a time, as a thread of Spring's container has, however many partitions it owns.
    ...{ concurrency, maxInFlight: concurrency },
    retry: KafkaRetry.policyOf(retry),
    naming: KafkaRetry.namings[consumer.naming],
    classifier: classifierOf(retry),
    ...(consumer.shutdownTimeout !== undefined && { shutdownTimeout: consumer.shutdownTimeout })
  }
}

const routeOf = (cures: boolean): Route.Route => (cures ? Route.retry : Route.deadLetter())

/** A function of the user that throws means that another try may cure the error. */
const mayCure = <E>(
  { isRetryable }: Pick<MessageConsumer<unknown, E>, "isRetryable">,
  retry: MessageRetry.MessageRetry,
  error: E
): boolean =>
  isRetryable === undefined ? MessageRetry.mayCure(retry, Failures.fromUnknown(error)) : isRetryable(error)

/** For defects, which have no typed rule. */
const classifierOf =
  (retry: MessageRetry.MessageRetry): ExceptionClassifier =>
  (failure) =>
    routeOf(MessageRetry.mayCure(retry, failure))

const deadLetters = ({ onDeadLetter }: ConsumerObserver): DeadLetter.DeadLetter =>
  DeadLetter.withSettings(
    DeadLetter.alertAndStore(({ originalTopic }) => Effect.sync(() => onDeadLetter(originalTopic))),
    { headers: { brokers: true } }
  )

/** The first try is in the main topic, each further one a delivery in a retry topic. */
const attemptInTiers = ({ tier, attempt }: OfRecord<unknown>): number => (tier === 0 ? 1 : tier + attempt)

/** Counts the tries of each record in place. */
const attemptsInPlace = (): ((delivery: OfRecord<unknown>) => number) => {
  const attempts = new WeakMap<object, number>()
  return ({ record }) => {
    const attempt = (attempts.get(record) ?? 0) + 1
    attempts.set(record, attempt)
    return attempt
  }
}
