/** Reads the options of a bus into a configuration. All mistakes are told at once, by the names that the options have. */
import { Configuration, type Handler, type Handlers } from "@eventbus/config"
import { Choices, EventBusError, type IdempotencyStore, Kinds } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Consumer } from "../Consumer.ts"
import type { EventBusOptions } from "../EventBusOptions.ts"
import type { KafkaConnection, KafkaOptions } from "../KafkaOptions.ts"
import * as PlainSettings from "./plainSettings.ts"

type Issue = EventBusError.ConfigurationIssue

/** The names of all options. The type asks for each of them. */
const known: { readonly [N in keyof Required<EventBusOptions>]: true } = {
  ...{ kafka: true, clusters: true, consumers: true, defaults: true, producer: true, idempotencyStore: true },
  outbox: true,
  ...{ fleet: true, audit: true, signals: true, log: true, onEvent: true, extension: true }
}

/** The configuration of the consumers. Fails with `ConfigurationValidation`. */
export const read = (
  options: EventBusOptions
): Effect.Effect<Configuration.Configuration, EventBusError.ConfigurationValidation> =>
  Effect.gen(function* () {
    const own = ownIssues(options)
    const decoded = yield* Effect.result(Configuration.decode(dataOf(options)))
    if (decoded._tag === "Failure")
      return yield* refusal([...own, ...renamed(decoded.failure).issues, ...tierIssues(options, writtenTiers(options))])
    const tiers = decoded.success.bindings.map(({ name, retry }) => [name, retry.tiers.length] as const)
    const issues = [...own, ...tierIssues(options, tiers)]
    return issues.length > 0 ? yield* refusal(issues) : decoded.success
  })

const refusal = (issues: ReadonlyArray<Issue>) => new EventBusError.ConfigurationValidation({ issues })

/** The same contents as a configuration file has. */
const dataOf = ({ consumers = {}, defaults = {}, fleet, audit }: EventBusOptions) => ({
  eventbus: {
    defaults: PlainSettings.of(defaults),
    bindings: Object.fromEntries(
      Object.entries(consumers).map(([name, consumer]) => [name, isConsumer(consumer) ? consumer.settings : consumer])
    ),
    fleet,
    audit
  }
})

/** The code of the consumers, as a configuration asks for it. */
export const handlersOf = ({
  consumers = {}
}: EventBusOptions): Handlers.Handlers<IdempotencyStore.IdempotencyStore> => ({
  byName: new Map(
    Object.entries(consumers).map(([name, consumer]): [string, Handler.Handler<IdempotencyStore.IdempotencyStore>] => [
      name,
      consumer.handler(name)
    ])
  )
})

/** The error with the names of the options in place of those of a file. */
export const renamed = (error: EventBusError.ConfigurationValidation): EventBusError.ConfigurationValidation =>
  new EventBusError.ConfigurationValidation({
    ...(error.binding === undefined ? {} : { binding: error.binding }),
    issues: error.issues.map(({ path, found, allowed }) => ({ path: optionOf(path), found, allowed }))
  })

const optionOf = (path: string): string =>
  path
    .replace(/^eventbus\.bindings\b/, "consumers")
    .replace(/^eventbus\./, "")
    .replace(/Ms$/, "")

const isConsumer = (value: unknown): value is Consumer =>
  typeof value === "object" && value !== null && "rules" in value && "handler" in value

/** The mistakes that no configuration file can have. */
const ownIssues = (options: EventBusOptions): ReadonlyArray<Issue> => {
  const { kafka, clusters = {}, consumers = {}, outbox } = options
  const all = Object.entries({ ...(kafka === undefined ? {} : { kafka }), ...below("clusters", clusters) })
  const aliases = [...(kafka === undefined ? [] : ["default"]), ...Object.keys(clusters)]
  return [
    ...Object.keys(options)
      .filter((name) => !(name in known))
      .map((path) => ({ path, found: "an unknown option", allowed: `one of ${Object.keys(known).join(", ")}` })),
    ...(all.length === 0 ? [{ path: "kafka", found: "nothing", allowed: aCluster }] : []),
    ...all
      .filter(([, cluster]) => typeof cluster !== "object" || cluster === null)
      .map(([path, cluster]) => ({ path, found: JSON.stringify(cluster), allowed: aCluster })),
    ...all.flatMap(([path, cluster]) => transportIssues(path, cluster)),
    ...(outbox === undefined || Layer.isLayer(outbox?.layer)
      ? []
      : [{ path: "outbox", found: "something else", allowed: "what outboxDispatcher({ ... }) answers" }]),
    ...Object.entries(below("consumers", consumers)).flatMap(([path, consumer]) =>
      isConsumer(consumer)
        ? [...clusterIssues(path, consumer, aliases, options), ...storeIssues(path, consumer, options)]
        : [{ path, found: "something else", allowed: "what consumer({ ... }) answers" }]
    )
  ]
}

const aCluster = 'a cluster, such as { brokers: ["localhost:9092"] }'

const below = <A>(section: string, entries: { readonly [name: string]: A }): { readonly [path: string]: A } =>
  Object.fromEntries(Object.entries(entries).map(([name, value]) => [`${section}.${name}`, value]))

const transportIssues = (path: string, cluster: KafkaOptions | KafkaConnection): ReadonlyArray<Issue> => {
  const isNamed = typeof cluster === "object" && "transport" in cluster && cluster.transport !== undefined
  return isNamed ? Kinds.oneOf(Choices.transport)(`${path}.transport`, cluster.transport) : []
}

const clusterIssues = (
  path: string,
  { settings }: Consumer,
  aliases: ReadonlyArray<string>,
  { defaults = {} }: EventBusOptions
): ReadonlyArray<Issue> => {
  const alias = settings["cluster"] ?? defaults.cluster ?? "default"
  if (aliases.length === 0 || typeof alias !== "string" || aliases.includes(alias)) return []
  const allowed = `one of the clusters ${aliases.join(", ")}`
  return [{ path: `${path}.cluster`, found: JSON.stringify(alias), allowed }]
}

const storeIssues = (path: string, { isIdempotent }: Consumer, { idempotencyStore }: EventBusOptions) =>
  isIdempotent && idempotencyStore === undefined
    ? [
        {
          path: "idempotencyStore",
          found: "nothing",
          allowed: `memory or the layer of a store, for ${path}.idempotency`
        }
      ]
    : []

/** How many retry topics each consumer has, by its name. */
type TierCounts = ReadonlyArray<readonly [name: string, tiers: number]>

/** The counts as they are written, where the options as a whole cannot be read. */
const writtenTiers = ({ consumers = {}, defaults = {} }: EventBusOptions): TierCounts =>
  Object.entries(consumers).flatMap(([name, consumer]) => {
    const tiers = listIn(isConsumer(consumer) ? consumer.settings["retry"] : undefined) ?? listIn(defaults.retry)
    return tiers === undefined ? [] : [[name, tiers.length] as const]
  })

const listIn = (retry: unknown): ReadonlyArray<unknown> | undefined =>
  typeof retry === "object" && retry !== null && "tiers" in retry && Array.isArray(retry.tiers)
    ? retry.tiers
    : undefined

/** A rule of `onError` may name no retry topic that there is none of. */
const tierIssues = ({ consumers = {} }: EventBusOptions, counts: TierCounts) =>
  counts.flatMap(([name, tiers]) =>
    (consumers[name]?.rules ?? []).flatMap(({ route }, index): ReadonlyArray<Issue> => {
      const tier = route?._tag === "Tier" || route?._tag === "Retry" ? route.tier : undefined
      if (tier === undefined || (Number.isInteger(tier) && tier >= 1 && tier <= tiers)) return []
      const allowed = tiers === 0 ? "no tier: there are none" : `a tier from 1 to ${tiers}`
      return [{ path: `consumers.${name}.onError[${index}]`, found: `tier ${tier}`, allowed }]
    })
  )
