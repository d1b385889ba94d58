/**
 * The audit log: who did what, to what, why, and with which outcome, in a Kafka topic. Off unless `layer` is provided.
 *
 * The admin API writes to it when `EventBusAdmin.layer` is built over it, and so does the command line for files with `eventbus.audit`. An action that changes something is
 * noted before it begins, so that nothing happens without an entry, and when it has ended.
 *
 * ```ts
 * import { Audit } from "@eventbus/core"
 * import { KafkaJs } from "@eventbus/kafkajs"
 * import { Effect, Layer } from "effect"
 *
 * export const newest = Effect.gen(function* () {
 *   const audit = yield* Audit.Audit
 *   const { entries } = yield* audit.page({ binding: "orders", limit: 10 })
 *   for (const { by, action, outcome } of entries) yield* Effect.log(`${by}: ${action}, ${outcome}`)
 * }).pipe(Effect.provide(Audit.layer().pipe(Layer.provide(KafkaJs.layer({ brokers: ["localhost:9092"] })))))
 * ```
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Action, AuditPage, AuditQuery, AuditUnavailable, Ending } from "./AuditView.ts"
import type { Broker } from "./Broker.ts"
import type { BrokerError } from "./BrokerError.ts"
import * as Choices from "./Choices.ts"
import * as Clusters from "./Clusters.ts"
import * as Defaults from "./Defaults.ts"
import type { UnknownCluster } from "./EventBusError.ts"
import type { UnfitTopic } from "./FleetView.ts"
import { Hostname } from "./Hostname.ts"
import * as AuditLog from "./internal/audit/auditLog.ts"
import * as AuditPages from "./internal/audit/auditPages.ts"
import * as AuditTopic from "./internal/audit/auditTopic.ts"
import { toMillis } from "./internal/base/durations.ts"
import * as OwnTopic from "./internal/publish/ownTopic.ts"
import * as Kinds from "./Kinds.ts"
import * as Ranges from "./Ranges.ts"
import type { InvalidArgument } from "./Replay.ts"
import type { Time } from "./Time.ts"
import * as TopicName from "./TopicName.ts"

/** Settings of the audit log. */
export interface Settings {
  /** The alias of the cluster that has the topic. Default `default`. */
  readonly cluster?: string
  /** The topic. Default `__eventbus.audit`. */
  readonly topic?: string
  /**
   * Decides about an action that changes something, or shows a payload, when its entry cannot be written. `refuse`: it fails with `AuditUnavailable`, and nothing is done. `proceed`:
   * it goes on, and the entry is a line of level `Error` in the log. Default `refuse`.
   */
  readonly whenUnwritable?: "refuse" | "proceed"
  /** How long an entry may take to be acknowledged. 1 to 2^31 - 1 ms. Default 5 seconds. */
  readonly timeout?: Time
}

/** The audit log. Nothing is connected before the first entry or page. */
export class Audit extends Context.Service<
  Audit,
  {
    /** The topic. */
    readonly topic: string
    /** Creates the topic where it is missing; the first entry does so, too. Fails with `UnfitTopic` when it is there and its settings do not fit. */
    readonly createTopic: Effect.Effect<void, BrokerError | UnfitTopic>
    /** Notes an action, runs it, and notes how it ended. Fails with `AuditUnavailable` before it runs, as `whenUnwritable` says. */
    readonly around: <A, E, R>(action: Action, run: Effect.Effect<A, E, R>) => Effect.Effect<A, E | AuditUnavailable, R>
    /** Notes that an action begins, and answers the id of its entries. For programs that know more of it at its end; otherwise take `around`. */
    readonly begin: (action: Action) => Effect.Effect<string, AuditUnavailable>
    /** Notes how an action ended that `begin` has noted. Never fails: an entry that cannot be written is a line in the log. */
    readonly end: (id: string, action: Action, ending: Ending) => Effect.Effect<void>
    /** Notes that somebody is about to see a payload. Views that are alike within a minute are one entry, and the next one counts them in `repeats`. */
    readonly view: (action: Action) => Effect.Effect<void, AuditUnavailable>
    /** Notes an attempt that was refused before anything was noted of it, by the tag of the error. Those without a name that are alike within a minute are one entry, as above. */
    readonly refused: (action: Action, error: string) => Effect.Effect<void>
    /** Entries, the newest first. Takes 30 seconds at most. */
    readonly page: (query?: AuditQuery) => Effect.Effect<AuditPage, BrokerError | InvalidArgument>
  }
>()("@eventbus/core/Audit") {}

/** The audit log of a program. Fails with `UnknownCluster` for an alias that no cluster has. Settings of another kind end the layer with `ConfigurationValidation`. */
export const layer = (settings: Settings = {}): Layer.Layer<Audit, UnknownCluster, Broker> =>
  Layer.effect(
    Audit,
    Effect.gen(function* () {
      Kinds.refuse(Ranges.problemsOfAll(settings, settingKinds, "Audit."))
      const { cluster = Defaults.binding.cluster, topic = Defaults.audit.topic } = settings
      const { whenUnwritable = Defaults.audit.whenUnwritable, timeout = Defaults.audit.timeoutMillis } = settings
      const broker = yield* Clusters.get(cluster)
      const hostname = yield* Hostname
      const log = yield* AuditLog.make({ broker, topic, hostname, whenUnwritable, timeoutMillis: toMillis(timeout) })
      return Audit.of({
        ...{ topic, ...log },
        createTopic: Effect.scoped(
          Effect.flatMap(broker.admin, (admin) => OwnTopic.ensure(admin, AuditTopic.of(topic)))
        ),
        page: (query) => AuditPages.page(broker, topic, query)
      })
    })
  )

const topicName = Kinds.make(
  "a legal topic name",
  (value) => typeof value === "string" && TopicName.illegal(value) === undefined
)

const settingKinds = {
  ...{ cluster: Kinds.name, topic: topicName },
  whenUnwritable: Kinds.oneOf(Choices.audit.whenUnwritable),
  ...Ranges.audit
}

export { endingOf } from "./internal/audit/endings.ts"
