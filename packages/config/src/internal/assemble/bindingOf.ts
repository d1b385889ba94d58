/**
 * Makes a core binding from settings and code.
 */
import {
  Binding,
  type BindingOptions,
  type CircuitBreaker,
  type CurrentTransaction,
  DeadLetter,
  type DeadLetterRecord,
  type Delivery,
  type EventBusError,
  type IdempotencyStore,
  RetryPolicy,
  TopicName
} from "@eventbus/core"
import type * as Effect from "effect/Effect"
import type { BindingSettings } from "../../BindingSettings.ts"
import type { Options } from "../../HandlerOptions.ts"
import * as ErrorNames from "../schema/errorNames.ts"

interface PerRecord<K, V, E, R, P> extends Options<K, V, E, P> {
  readonly handler: (delivery: Delivery.Delivery<K, V>) => Effect.Effect<unknown, E, R>
}

interface PerBatch<K, V, E, R, P> extends Options<K, V, Exclude<E, EventBusError.BatchProcessing>, P> {
  readonly handleBatch: (batch: Delivery.Batch<K, V>) => Effect.Effect<unknown, E, R>
}

export const perRecord = <K, V, E, R, P>(
  settings: BindingSettings,
  code: PerRecord<K, V, E, R, P>
): Binding.Binding<R | P> => Binding.make(settings.name, recordOptions(settings, code))

export const idempotent = <K, V, E, R, P>(
  settings: BindingSettings,
  code: PerRecord<K, V, E, R, P> & { readonly idempotency: IdempotencyStore.Options<K, V> }
): Binding.Binding<R | P | IdempotencyStore.IdempotencyStore> =>
  Binding.make(settings.name, { ...recordOptions(settings, code), idempotency: code.idempotency })

export const perBatch = <K, V, E, R, P>(
  settings: BindingSettings,
  code: PerBatch<K, V, E, R, P>
): Binding.Binding<R | P> =>
  Binding.makeBatch(settings.name, { ...optionsOf(settings, code), handleBatch: withoutErrorType(code.handleBatch) })

export const idempotentBatch = <K, V, E, R, P>(
  settings: BindingSettings,
  code: PerBatch<K, V, E, R, P> & { readonly idempotency: IdempotencyStore.Options<K, V> }
): Binding.Binding<R | P | IdempotencyStore.IdempotencyStore> =>
  Binding.makeBatch(settings.name, {
    ...{ ...optionsOf(settings, code), handleBatch: withoutErrorType(code.handleBatch) },
    idempotency: code.idempotency
  })

export const transactional = <K, V, E, R, P>(
  settings: BindingSettings,
  code: PerRecord<K, V, E, R, P>
): Binding.Binding<Exclude<R, CurrentTransaction.CurrentTransaction> | P> => {
  const { ackMode: _, commitInterval: __, processingOrder: ___, ...options } = optionsOf(settings, code)
  return Binding.makeTransactional(settings.name, { ...options, handler: withoutErrorType(code.handler) })
}

const recordOptions = <K, V, E, R, P>(settings: BindingSettings, code: PerRecord<K, V, E, R, P>) => ({
  ...optionsOf(settings, code),
  listenerType: settings.listenerType,
  batchFailureStrategy: settings.batchFailureStrategy,
  handler: withoutErrorType(code.handler)
})

/** Core's types demand a rule for each error of a handler. Here the file may hold the rules, so the handler's error type is removed. */
const withoutErrorType = <A, R>(handler: (input: A) => Effect.Effect<unknown, unknown, R>) =>
  handler as (input: A) => Effect.Effect<unknown, never, R>

/** All options except for the handler. */
const optionsOf = <K, V, E, P>(settings: BindingSettings, code: Options<K, V, E, P>) => ({
  ...plainOptions(settings),
  naming: namingOf(settings, code.naming),
  retry: retryPolicyOf(settings, namesOf(code.errors)),
  ...breakerOf(settings, code.probe),
  deadLetter: DeadLetter.withSettings(deadLetterOf(settings, code.onDeadLetter), code.deadLetter ?? {}),
  value: code.value,
  ...(code.key === undefined ? {} : { key: code.key }),
  ...(code.onError === undefined ? {} : { onError: code.onError as BindingOptions.OnError<never> }),
  ...(code.classifier === undefined ? {} : { classifier: code.classifier }),
  ...(code.transforms === undefined ? {} : { transforms: code.transforms }),
  ...(code.interceptors === undefined ? {} : { interceptors: code.interceptors }),
  ...(code.enrich === undefined ? {} : { enrich: code.enrich })
})

const namesOf = (errors: { readonly [tag: string]: ReadonlyArray<string> } | undefined) =>
  errors === undefined ? undefined : new Map(Object.entries(errors))

const plainOptions = (settings: BindingSettings) => ({
  topic: settings.topic,
  groupId: settings.groupId,
  cluster: settings.cluster,
  ackMode: settings.ackMode,
  commitInterval: settings.commitIntervalMs,
  concurrency: settings.concurrency,
  maxPollRecords: settings.maxPollRecords,
  maxPollInterval: settings.maxPollIntervalMs,
  sessionTimeout: settings.sessionTimeoutMs,
  heartbeatInterval: settings.heartbeatIntervalMs,
  rebalanceTimeout: settings.rebalanceTimeoutMs,
  fetchMaxWait: settings.fetchMaxWaitMs,
  maxPartitionFetchBytes: settings.maxPartitionFetchBytes,
  groupProtocol: settings.groupProtocol,
  staticMembership: settings.staticMembership,
  partitionAssignmentStrategy: settings.partitionAssignmentStrategy,
  autoOffsetReset: settings.autoOffsetReset,
  isolationLevel: settings.isolationLevel,
  processingOrder: settings.processingOrder,
  ...(settings.maxInFlight === undefined ? {} : { maxInFlight: settings.maxInFlight }),
  maxBufferedRecords: settings.maxBufferedRecords,
  copyCompression: settings.copyCompression,
  maxBufferedBytes: settings.maxBufferedBytes,
  orderingMode: settings.orderingMode,
  ...perKeyOf(settings),
  onExhausted: settings.onExhausted,
  adopts: settings.adopts,
  missingTopics: settings.missingTopics,
  logKeys: settings.logKeys,
  shutdownTimeout: settings.shutdownTimeoutMs,
  autoStartup: settings.autoStartup
})

const perKeyOf = ({ perKey }: BindingSettings): Pick<BindingOptions.CommonSettings, "perKey"> => {
  if (perKey === undefined) return {}
  const { holdForMs: holdFor, ...others } = perKey
  return { perKey: { ...others, holdFor } }
}

const namingOf = (
  { naming, deadLetter: { topic } }: BindingSettings,
  own: TopicName.NamingStrategy = TopicName[naming]
): TopicName.NamingStrategy => (topic === undefined ? own : { ...own, deadLetter: () => topic })

/** Throws `InvalidRetryPolicy` for tiers that contradict each other. */
const retryPolicyOf = ({ retry }: BindingSettings, names: ErrorNames.Names | undefined): RetryPolicy.RetryPolicy => {
  const { blocking, tiers, maxElapsedTimeMs, equalDelays, consumer, partitions, replicationFactor } = retry
  const { initialBackoffMs, maxBackoffMs, ...others } = blocking
  return RetryPolicy.tiered({
    ...ErrorNames.exceptionsOf(retry, names),
    blocking: { ...others, initialBackoff: initialBackoffMs, maxBackoff: maxBackoffMs },
    tiers: tiers.map(({ delayMs, maxDelayMs, ...tier }) => ({
      ...{ delay: delayMs, ...tier },
      ...(maxDelayMs === undefined ? {} : { maxDelay: maxDelayMs })
    })),
    ...(maxElapsedTimeMs === undefined ? {} : { maxElapsedTime: maxElapsedTimeMs }),
    equalDelays,
    consumer,
    ...(partitions === undefined ? {} : { partitions }),
    ...(replicationFactor === undefined ? {} : { replicationFactor })
  })
}

const breakerOf = <R>(
  { circuitBreaker }: BindingSettings,
  probe: CircuitBreaker.Options<R>["probe"]
): Pick<BindingOptions.FailureOptions<R, R>, "circuitBreaker"> => {
  const {
    enabled,
    slowCallDurationMs,
    waitDurationInOpenStateMs,
    openBackoff,
    probeTimeoutMs,
    giveUpAfterMs,
    ...plain
  } = circuitBreaker
  if (!enabled) return {}
  return {
    circuitBreaker: {
      ...plain,
      slowCallDuration: slowCallDurationMs,
      waitDurationInOpenState: waitDurationInOpenStateMs,
      probeTimeout: probeTimeoutMs,
      ...(openBackoff === undefined
        ? {}
        : { openBackoff: { multiplier: openBackoff.multiplier, maxWaitDuration: openBackoff.maxWaitDurationMs } }),
      ...(giveUpAfterMs === undefined ? {} : { giveUpAfter: giveUpAfterMs }),
      ...(probe === undefined ? {} : { probe })
    }
  }
}

/** `handlerChecks` refuses a strategy without its `onDeadLetter`. A binding without code, for rules and plans, stores its dead letters. */
const deadLetterOf = <R>(
  { deadLetter }: BindingSettings,
  onDeadLetter: ((letter: DeadLetterRecord.DeadLetterRecord) => Effect.Effect<unknown, unknown, R>) | undefined
): DeadLetter.DeadLetter<R> => {
  const { strategy, replay, alertTimeoutMs, topic, topicSuffix, headers } = deadLetter
  const base = (): DeadLetter.DeadLetter<R> => {
    if (strategy === "SCHEDULED_REPLAY") {
      const { cooldownMs, batchSize } = replay
      return DeadLetter.scheduledReplay({ cooldown: cooldownMs, batchSize })
    }
    if (onDeadLetter === undefined || strategy === "STORE_ONLY") return DeadLetter.storeOnly
    return strategy === "CUSTOM"
      ? DeadLetter.custom(onDeadLetter)
      : DeadLetter.alertAndStore(onDeadLetter, { alertTimeout: alertTimeoutMs })
  }
  const { maxReplays, origins } = replay
  const named = topic === undefined ? { topicSuffix } : {}
  return DeadLetter.withSettings(base(), { ...named, headers, maxReplays, origins })
}
