/**
 * Strategies for a binding's dead letters once they are stored: nothing, an alert, a replay after a while, or a handler of your own (connector seed §4.7).
 *
 * ```ts
 * import { DeadLetter } from "@eventbus/core"
 * import { Effect } from "effect"
 *
 * export const stored = DeadLetter.storeOnly
 * export const alerting = DeadLetter.alertAndStore((letter) => Effect.log(`${letter.originalTopic}: ${letter.lastExceptionClass}`))
 * export const replayed = DeadLetter.withSettings(DeadLetter.scheduledReplay({ cooldown: "2 hours" }), { topicSuffix: "dead" })
 * ```
 */
import type * as Effect from "effect/Effect"
import * as Function from "effect/Function"
import * as Schema from "effect/Schema"
import type { DeadLetterRecord } from "./DeadLetterRecord.ts"
import * as Defaults from "./Defaults.ts"
import type { DeadLetterReason, FailureToGroup } from "./Failure.ts"
import { toMillis } from "./internal/base/durations.ts"
import { isObject, taken, takenWhole } from "./internal/base/properties.ts"
import * as DeadLetterKinds from "./internal/settings/deadLetterKinds.ts"
import * as RenamedSettings from "./internal/settings/renamedSettings.ts"
import * as Kinds from "./Kinds.ts"
import * as Ranges from "./Ranges.ts"
import type { Time } from "./Time.ts"

/** Why a record is dead-lettered. A function of the settings may choose the topic by it. */
export interface FailureSummary {
  /** Why the connector gave the record up. */
  readonly reason: DeadLetterReason
  /** Never empty. */
  readonly exceptionClass: string
  /** The message of the last error. May be empty. */
  readonly message: string
  /** The `_tag` of a tagged error. */
  readonly tag: string | undefined
  /** The last tier that the record was in; 0 is the main topic. */
  readonly tier: number
}

/** Other systems' headers, written beside ours. Default: none. */
export interface HeaderSets {
  /**
   * Spring Kafka's, with its binary encodings. `retry-topic`: the names of `@RetryableTopic` (`kafka_original-topic`, `retry_topic-attempts` …).
   * `plain`: those of `DeadLetterPublishingRecoverer` alone (`kafka_dlt-original-topic` …).
   */
  readonly spring?: "retry-topic" | "plain" | undefined
  /** `original-topic`, `exception-message`, `exception-class`, `failure-timestamp` (ISO-8601) and `retry-count`. */
  readonly brokers?: boolean | undefined
  /** `x-eventbus-trail`: the tiers that gave the record up as a JSON array of {tier, exceptionClass, exhaustedAt, attempts}. */
  readonly trailJson?: boolean | undefined
}

/** The settings that every strategy takes. */
export interface Settings {
  /** The dead letter topic is `{topic}.{topicSuffix}` then. Default: what the binding's `naming` says, `{topic}.DLT`. */
  readonly topicSuffix?: string | undefined
  /**
   * Another topic for some failures; undefined is the dead letter topic, and so is a function that throws, gives no legal name, or names a topic that the
   * binding reads. Strategy, replay and statistics look after the dead letter topic alone. Default: all go there.
   */
  readonly topicFor?: ((failure: FailureSummary) => string | undefined) | undefined
  /**
   * Groups dead letters: those of one answer belong together, and have the fingerprint `own-{answer}`. Undefined leaves it to the connector, and so does a function that
   * throws, or whose answer is no text of 1 to 128 characters. The answer stands in a header, so keep record data out of it. A dead letter that has no fingerprint in its
   * headers is given to the function when it is listed. Default: the class of the error, the place in the application that it comes from, and the topic.
   */
  readonly fingerprint?: ((failure: FailureToGroup) => string | undefined) | undefined
  /** Headers of other systems to write beside the connector's. Default: none. */
  readonly headers?: HeaderSets | undefined
  /**
   * Further topics that a replay may publish to, beside the main topic of the binding: those that dead letters in this topic came from, such as dead letters that another
   * system stores there. A dead letter from any other topic is refused, because whoever may write dead letters chooses what their headers say. Default: none. A topic of
   * Kafka itself (`__…`) and a journal of replays are not allowed, and neither are retry and dead letter topics of bindings.
   */
  readonly origins?: ReadonlyArray<string> | undefined
  /**
   * A record that was replayed so often stays in the dead letter topic: scheduled replays and all commands that replay pass it over, whatever the strategy is. A command
   * replays it all the same with `ignoreMaxReplays`. Default 3; 0 or more, and 0 means no replay at all.
   */
  readonly maxReplays?: number | undefined
}

/** The settings of a scheduled replay. */
export interface ReplaySettings {
  /** Records younger than this, since they were dead-lettered, wait. */
  readonly cooldownMillis: number
  /** Most records of one run; there is one run a minute at most. */
  readonly batchSize: number
}

/** A strategy with its settings. `R` is what its handler requires. */
export type DeadLetter<R = never> = {
  /** The settings that all strategies have. */
  readonly settings: Settings
} & (
  | { readonly _tag: "StoreOnly" }
  | {
      readonly _tag: "AlertAndStore"
      /** The handler of the strategy: it gets each dead letter. */
      readonly handler: (record: DeadLetterRecord) => Effect.Effect<unknown, unknown, R>
      /** How long the handler may take, in milliseconds. */
      readonly timeoutMillis: number
    }
  | ({ readonly _tag: "ScheduledReplay" } & ReplaySettings)
  | { readonly _tag: "Custom"; readonly handler: (record: DeadLetterRecord) => Effect.Effect<unknown, unknown, R> }
)

/** Settings outside of what is allowed; all of them at once. */
export class InvalidDeadLetter extends Schema.TaggedError<InvalidDeadLetter>()("InvalidDeadLetter", {
  /** Every setting that is not allowed. */
  issues: Schema.Array(
    Schema.Struct({
      /** The setting, such as `cooldown`. */
      path: Schema.String,
      /** The value that was given, as text. */
      found: Schema.String,
      /** The values that are allowed. */
      allowed: Schema.String
    })
  )
}) {
  override get message(): string {
    return this.issues.map(({ path, found, allowed }) => `${path} is ${found}; allowed: ${allowed}`).join("\n")
  }
}

/** The record stays in the dead letter topic until somebody replays or purges it: the default. */
export const storeOnly: DeadLetter = { _tag: "StoreOnly", settings: {} }

/**
 * Calls the handler for each dead letter that this process stored, one after the other and beside the work: one that fails, dies or takes longer than
 * `alertTimeout` (default 30 seconds, more than 0) is reported and counted, and changes nothing. When alerts pile up (1000 waiting), further ones are dropped
 * and counted. A crash may lose an alert, never the record.
 */
export const alertAndStore = <E, R>(
  handler: (record: DeadLetterRecord) => Effect.Effect<unknown, E, R>,
  options: { readonly alertTimeout?: Time } = {}
): DeadLetter<R> => {
  refuse([
    ...Kinds.func("handler", handler),
    ...RenamedSettings.issues(options, RenamedSettings.ofAlerts),
    ...Ranges.problemsOfAll(options, { alertTimeout: Ranges.deadLetter.alertTimeout })
  ])
  const timeoutMillis = toMillis(options.alertTimeout ?? Defaults.deadLetter.alertTimeoutMillis)
  return { _tag: "AlertAndStore", handler, timeoutMillis, settings: {} }
}

/**
 * Publishes dead letters to their source topic again, once they are `cooldown` old (default 1 hour): at most `batchSize` (default 100) in one run, one run
 * a minute at most, and each record at most `maxReplays` times (default 3; 0 or more), which is the setting of that name.
 */
export const scheduledReplay = (
  options: { readonly cooldown?: Time; readonly maxReplays?: number; readonly batchSize?: number } = {}
): DeadLetter => {
  const { alertTimeout: _, ...ranges } = Ranges.deadLetter
  refuse(Ranges.problemsOfAll(options, ranges))
  const { cooldown = Defaults.deadLetter.cooldownMillis, batchSize = Defaults.deadLetter.batchSize } = options
  const cooldownMillis = toMillis(cooldown)
  const settings = options.maxReplays === undefined ? {} : { maxReplays: options.maxReplays }
  return { _tag: "ScheduledReplay", cooldownMillis, batchSize, settings }
}

/**
 * The handler gets each record of the dead letter topic, in group `{groupId}.dlt`, one at a time per partition. One that fails leaves the record where it
 * is, is reported, and the next record follows: it is not called again for it, and counts and lists show the record as failed. So does one that returns no Effect, or that
 * takes longer than the binding's processing budget (70 % of `maxPollInterval`, by default 7 minutes), and is interrupted then. A crash may repeat the last record.
 */
export const custom = <E, R>(handler: (record: DeadLetterRecord) => Effect.Effect<unknown, E, R>): DeadLetter<R> => {
  refuse(Kinds.func("handler", handler))
  return { _tag: "Custom", handler, settings: {} }
}

/**
 * The strategy with these settings; what is not named stays as it is. Throws `InvalidDeadLetter`, which names every setting that is not allowed.
 */
export const withSettings: {
  (settings: Settings): <R>(deadLetter: DeadLetter<R>) => DeadLetter<R>
  <R>(deadLetter: DeadLetter<R>, settings: Settings): DeadLetter<R>
} = Function.dual(2, <R>(deadLetter: DeadLetter<R>, settings: Settings): DeadLetter<R> => {
  const strategy = isObject(deadLetter) ? takenWhole(deadLetter, ["_tag", "settings"]) : deadLetter
  const added = isObject(settings) ? taken(settings, settingNames) : settings
  refuse([
    ...DeadLetterKinds.complete("deadLetter", strategy),
    ...Ranges.problemsOfAll(added, DeadLetterKinds.settings)
  ])
  return { ...strategy, settings: { ...taken(strategy.settings, settingNames), ...added } }
})

const settingNames = Object.keys(DeadLetterKinds.settings)

const refuse = (issues: InvalidDeadLetter["issues"]): void => {
  if (issues.length > 0) throw new InvalidDeadLetter({ issues })
}
