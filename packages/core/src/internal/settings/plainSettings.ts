/**
 * The settings that every kind of binding takes, with defaults applied: plain values, in milliseconds, beside the retry tiers that they make.
 */

import type { Settings } from "../../BindingOptions.ts"
import * as Defaults from "../../Defaults.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import type { Time } from "../../Time.ts"
import * as TopicName from "../../TopicName.ts"
import { toMillis } from "../base/durations.ts"
import * as Tiers from "../retry/tiers.ts"
import * as PerKey from "./perKey.ts"
import * as Topics from "./topics.ts"

type Durations =
  | "commitInterval"
  | "maxPollInterval"
  | "sessionTimeout"
  | "heartbeatInterval"
  | "rebalanceTimeout"
  | "fetchMaxWait"
  | "shutdownTimeout"

export interface PlainSettings
  extends Required<
    Omit<Settings<never, never>, "topic" | "key" | "value" | "classifier" | "transforms" | "perKey" | Durations>
  > {
  readonly name: string
  readonly topic: string
  readonly tiers: Tiers.Tiers
  readonly perKey: PerKey.PlainPerKey
  readonly commitIntervalMillis: number
  readonly maxPollIntervalMillis: number
  readonly sessionTimeoutMillis: number
  readonly heartbeatIntervalMillis: number
  readonly rebalanceTimeoutMillis: number
  readonly fetchMaxWaitMillis: number
  readonly shutdownTimeoutMillis: number
}

/** The options that become plain settings. */
export type Given = Omit<Settings<unknown, unknown>, "key" | "value">

export const plainSettings = (name: string, options: Given, listenerType: "SINGLE" | "BATCH"): PlainSettings => {
  const { groupId, naming = TopicName.standard, enrich = noHeaders, interceptors = [] } = options
  const [topic = ""] = Topics.listOf(options.topic)
  const { adopts = [] } = options
  const { processingOrder = Defaults.binding.processingOrder } = options
  const retry = options.retry ?? defaultRetry(options)
  return {
    ...{ name, topic, groupId, adopts, naming, retry, enrich, interceptors, processingOrder },
    tiers: Tiers.make({ topic, groupId }, naming, retry.tiers),
    perKey: PerKey.plain(options.perKey),
    ...choices(options),
    ...numbers(options),
    maxPollRecords: options.maxPollRecords ?? Defaults.binding.maxPollRecords[listenerType],
    maxInFlight: options.maxInFlight ?? Defaults.binding.maxInFlight[processingOrder],
    commitIntervalMillis: millis(options.commitInterval, Defaults.binding.commitIntervalMillis),
    maxPollIntervalMillis: millis(options.maxPollInterval, Defaults.binding.maxPollIntervalMillis),
    sessionTimeoutMillis: millis(options.sessionTimeout, Defaults.binding.sessionTimeoutMillis),
    heartbeatIntervalMillis: millis(options.heartbeatInterval, Defaults.binding.heartbeatIntervalMillis),
    rebalanceTimeoutMillis: millis(options.rebalanceTimeout, Defaults.binding.rebalanceTimeoutMillis),
    fetchMaxWaitMillis: millis(options.fetchMaxWait, Defaults.binding.fetchMaxWaitMillis),
    shutdownTimeoutMillis: millis(options.shutdownTimeout, Defaults.binding.shutdownTimeoutMillis)
  }
}

const noHeaders = () => []

/** The seed's three tiers, as in a file; none with `STRICT`, where a record in a tier would be overtaken. */
const defaultRetry = ({ orderingMode = Defaults.binding.orderingMode }: Given): RetryPolicy.RetryPolicy =>
  RetryPolicy.tiered({ tiers: Defaults.retry.tierDelaysMillis[orderingMode] })

const choices = (options: Given) => ({
  cluster: options.cluster ?? Defaults.binding.cluster,
  ackMode: options.ackMode ?? Defaults.binding.ackMode,
  orderingMode: options.orderingMode ?? Defaults.binding.orderingMode,
  onExhausted: options.onExhausted ?? Defaults.binding.onExhausted,
  missingTopics: options.missingTopics ?? Defaults.binding.missingTopics,
  groupProtocol: options.groupProtocol ?? Defaults.binding.groupProtocol,
  staticMembership: options.staticMembership ?? Defaults.binding.staticMembership,
  partitionAssignmentStrategy: options.partitionAssignmentStrategy ?? Defaults.binding.partitionAssignmentStrategy,
  autoOffsetReset: options.autoOffsetReset ?? Defaults.binding.autoOffsetReset,
  isolationLevel: options.isolationLevel ?? Defaults.binding.isolationLevel,
  copyCompression: options.copyCompression ?? Defaults.binding.copyCompression,
  logKeys: options.logKeys ?? Defaults.binding.logKeys,
  autoStartup: options.autoStartup ?? Defaults.binding.autoStartup
})

const numbers = (options: Given) => ({
  concurrency: options.concurrency ?? Defaults.binding.concurrency,
  maxBufferedRecords: options.maxBufferedRecords ?? Defaults.binding.maxBufferedRecords,
  maxBufferedBytes: options.maxBufferedBytes ?? Defaults.binding.maxBufferedBytes,
  maxPartitionFetchBytes: options.maxPartitionFetchBytes ?? Defaults.binding.maxPartitionFetchBytes
})

/** A refused duration is NaN, which no rule between settings objects to. */
const millis = (input: Time | undefined, fallback: number): number => (input === undefined ? fallback : toMillis(input))
