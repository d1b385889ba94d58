/**
 * A fleet: all processes that run bindings of the same groups, seen and steered through two Kafka topics and nothing else. Off unless `layer` is provided.
 *
 * - The control topic has what operators want: holds, which outlive deploys, and commands. Operators alone write to it.
 * - The fleet topic has what processes tell: heartbeats, and answers to commands.
 *
 * A connector under the layer is a process of the fleet. A program without bindings uses the operations, and joins nothing.
 *
 * ```ts
 * import { Binding, Fleet, Serde } from "@eventbus/core"
 * import { KafkaJs } from "@eventbus/kafkajs"
 * import { Effect, Layer } from "effect"
 *
 * const orders = Binding.make("orders", { topic: "orders", groupId: "billing", value: Serde.string, handler: () => Effect.void })
 *
 * export const service = Binding.layer(orders).pipe(
 *   Layer.provideMerge(Fleet.layer({ version: "1.4.2" })),
 *   Layer.provide(KafkaJs.layer({ brokers: ["localhost:9092"] }))
 * )
 *
 * // Nobody handles a record of `orders` from now on, in whatever process.
 * export const hold = Effect.flatMap(Fleet.Fleet, (fleet) =>
 *   fleet.hold({ binding: "orders", groupId: "billing", reason: "the bank is down", by: "ann" })
 * )
 * ```
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Broker } from "./Broker.ts"
import type { BrokerError } from "./BrokerError.ts"
import * as Clusters from "./Clusters.ts"
import * as Defaults from "./Defaults.ts"
import type { ConfigurationIssue, UnknownCluster } from "./EventBusError.ts"
import type {
  CommandReport,
  CommandRequest,
  Hold,
  HoldRequest,
  HoldTarget,
  ProcessAnswers,
  ReleaseRequest,
  UnfitTopic,
  View
} from "./FleetView.ts"
import { Hostname } from "./Hostname.ts"
import * as DerivedNames from "./internal/base/derivedNames.ts"
import { toMillis } from "./internal/base/durations.ts"
import { isObject, taken } from "./internal/base/properties.ts"
import * as FleetArguments from "./internal/fleet/fleetArguments.ts"
import * as FleetProcess from "./internal/fleet/fleetProcess.ts"
import { type Join, Membership } from "./internal/fleet/membership.ts"
import * as Operator from "./internal/fleet/operator.ts"
import * as Kinds from "./Kinds.ts"
import * as Ranges from "./Ranges.ts"
import type { InvalidArgument } from "./Replay.ts"
import type { Time } from "./Time.ts"
import * as TopicName from "./TopicName.ts"

/** Settings of a fleet. All processes and operators of it have the same topics and the same cluster. */
export interface Settings {
  /** The alias of the cluster that has both topics. It may hold bindings of other clusters. Default `default`. */
  readonly cluster?: string
  /** The topic of holds and commands. Default `__eventbus.control`. */
  readonly controlTopic?: string
  /** The topic of heartbeats and answers: another one than the control topic. Default `__eventbus.fleet`. */
  readonly fleetTopic?: string
  /**
   * Decides about a process whose control topic cannot be read within `controlTimeout` when it starts. `run`: its bindings run. `hold`: they are held until it can be read. Once
   * a process knows the holds, they stay, whatever becomes of the topic. Default `run`.
   */
  readonly onControlUnavailable?: "run" | "hold"
  /** How long a process waits for the control topic when it starts; until then it fetches no record. 1 to 2^31 - 1 ms. Default 10 seconds. */
  readonly controlTimeout?: Time
  /** The version of the application, for operators. At most 256 characters. Default: empty. */
  readonly version?: string
}

/** Operations on a fleet. Nothing is connected before the first one. */
export class Fleet extends Context.Service<
  Fleet,
  {
    /** Creates both topics where they are missing. Fails with `UnfitTopic` when one is there and its settings do not fit. */
    readonly createTopics: Effect.Effect<void, BrokerError | UnfitTopic>
    /**
     * Holds a binding, or one of its retry tiers, in every process, also in those that start later, until it is released. Replaces a hold of the same target. Creates the
     * control topic when it is missing. Answers when the hold is stored: processes obey within a second.
     */
    readonly hold: (request: HoldRequest) => Effect.Effect<Hold, InvalidArgument | UnfitTopic | BrokerError>
    /** Ends a hold, and keeps who has ended it and why. Answers whether there was one. */
    readonly release: (request: ReleaseRequest) => Effect.Effect<boolean, InvalidArgument | UnfitTopic | BrokerError>
    /**
     * Waits until every live process with the binding obeys all holds and releases that were written before, at most for `wait` (0 to 2^31 - 1 ms, default 10 seconds). An
     * answer is `done`: a process pauses at once, and records that have begun go to their end. A process of a version that does not tell is missing.
     */
    readonly applied: (target: HoldTarget, wait?: Time) => Effect.Effect<ProcessAnswers, InvalidArgument | BrokerError>
    /**
     * Gives a command to the processes that live now, and waits for their answers, at most for `wait`. A process that starts later does not obey it. A command that is
     * given again with its id is not run again: the answers are waited for. Fails with `InvalidArgument` when the id is that of another command.
     */
    readonly command: (
      request: CommandRequest
    ) => Effect.Effect<CommandReport, InvalidArgument | UnfitTopic | BrokerError>
    /** The processes, the holds, and what does not fit about the topics. Takes up to 6 seconds when no process seems to live. */
    readonly view: Effect.Effect<View, BrokerError>
  }
>()("@eventbus/core/Fleet") {}

/**
 * A fleet for the connectors and the operators of a program. Provide it to `Binding.layer`. Fails with `UnknownCluster` for an alias that no cluster has. Settings of another
 * kind end the layer with `ConfigurationValidation`.
 */
export const layer = (settings: Settings = {}): Layer.Layer<Fleet, UnknownCluster, Broker> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const once = checked(settings)
      const { cluster = Defaults.binding.cluster, version = "", controlTimeout } = once
      const { controlTopic = Defaults.fleet.controlTopic, fleetTopic = Defaults.fleet.fleetTopic } = once
      const { onControlUnavailable = Defaults.fleet.onControlUnavailable } = once
      const broker = yield* Clusters.get(cluster)
      const hostname = yield* Hostname
      const topics = { control: controlTopic, fleet: fleetTopic }
      const controlTimeoutMillis = toMillis(controlTimeout ?? Defaults.fleet.controlTimeoutMillis)
      const join: Join = (members) =>
        FleetProcess.join({ broker, topics, hostname, version, onControlUnavailable, controlTimeoutMillis }, members)
      const operator = yield* Operator.make({ broker, topics, hostname })
      return Context.make(Fleet, Fleet.of(operator)).pipe(Context.add(Membership, join))
    })
  )

const topicName = Kinds.make(
  "a legal topic name",
  (value) => typeof value === "string" && TopicName.illegal(value) === undefined
)

/** A copy of the settings, which are read once. */
const checked = (settings: Settings): Settings => {
  const kinds = FleetArguments.settingKinds(topicName)
  const once = isObject(settings) ? taken(settings, Object.keys(kinds)) : settings
  const issues = Ranges.problemsOfAll(once, kinds, "Fleet.")
  Kinds.refuse(issues.length > 0 ? issues : sameTopics(once))
  return once
}

/** Each topic has its own settings, and its own writers. */
const sameTopics = ({
  controlTopic = Defaults.fleet.controlTopic,
  fleetTopic = Defaults.fleet.fleetTopic
}: Settings): ReadonlyArray<ConfigurationIssue> =>
  controlTopic === fleetTopic || DerivedNames.collide(controlTopic, fleetTopic)
    ? [{ path: "Fleet.fleetTopic", found: `'${fleetTopic}'`, allowed: `another topic than '${controlTopic}'` }]
    : []
