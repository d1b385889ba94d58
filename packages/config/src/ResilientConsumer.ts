/**
 * The configuration of a result-based consumer, root `KafkaConsumer` (resilient consumer seed §1, "Configuration Examples"), as one binding and one cluster.
 *
 * ```ts
 * import { Handler, ResilientConsumer } from "@eventbus/config"
 * import { Serde } from "@eventbus/core"
 * import { Effect, Schema } from "effect"
 *
 * const Order = Schema.Struct({ id: Schema.String })
 * const handler = Handler.make({ value: Serde.json(Order), handler: ({ value }) => Effect.log(value.id) })
 *
 * export const Main = ResilientConsumer.layerFile("appsettings.json", handler)
 * ```
 *
 * The topics have the names `{TopicName}.retry.{n}` and `{TopicName}.error`. `ConfigurationValidation` lists all mistakes by the keys of the file.
 */
import { type Broker, type EventBusConnector, EventBusError, Ranges } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Configuration from "./Configuration.ts"
import type { Handler } from "./Handler.ts"
import { canonical } from "./internal/files/canonical.ts"
import * as Files from "./internal/files/files.ts"
import * as Texts from "./internal/files/texts.ts"
import { decoder } from "./internal/schema/decoding.ts"
import { deepFreeze } from "./internal/schema/deepFreeze.ts"
import { duration, text, topicName, whole, withDefault } from "./internal/schema/leaves.ts"
import * as Shape from "./internal/schema/shape.ts"
import * as Issues from "./internal/tree/issues.ts"
import * as Node from "./internal/tree/node.ts"
import { toNode } from "./internal/tree/plainData.ts"

const section = <F extends Schema.Struct.Fields>(description: string, fields: F) =>
  Schema.Struct(fields).annotate({ description })

/** The schema of the keys below `KafkaConsumer`. */
export const KafkaConsumer = section("A result-based consumer.", {
  TopicName: topicName("The Kafka topic to read, and the binding's name."),
  ConsumerNumber: whole("Consumers (group members) in this process. Default 1.", Ranges.binding.concurrency).pipe(
    withDefault(1)
  ),
  GroupId: text("The consumer group."),
  SchemaRegistryUrl: Schema.optionalKey(
    text("Values are Avro then, in the wire format of this schema registry. Default: none, JSON.")
  ),
  BootstrapServers: text("`bootstrap.servers`: host:port, several with commas."),
  Error: Schema.optionalKey(
    section("Where records go that failed for good.", {
      TopicName: Schema.optionalKey(topicName("Full name of the error topic. Default `{TopicName}.error`."))
    })
  ),
  RetryPolicy: Schema.optionalKey(
    section("How a record is tried again. Default: not at all.", {
      Delay: duration("Wait before each attempt, milliseconds.", Ranges.retry.tier.delay),
      RetryAttempts: whole("Attempts after the first, each in a topic of its own.", {
        minimum: 0,
        maximum: 100,
        kind: "whole"
      })
    })
  )
})

type Decoded = typeof KafkaConsumer.Type

/** The keys below `KafkaConsumer`, as code sets them. */
export interface Values {
  /** Topic to read, and name of the binding. */
  readonly TopicName: string
  /** Consumer group. */
  readonly GroupId: string
  /** `bootstrap.servers`: host:port, several separated by commas. */
  readonly BootstrapServers: string
  /** Number of consumers in this process, 1 or more. Default 1. */
  readonly ConsumerNumber?: number
  /** URL of the schema registry; values are then Avro. Default none: values are JSON. */
  readonly SchemaRegistryUrl?: string
  /** Topic of dead letters. Default `{TopicName}.error`. */
  readonly Error?: { readonly TopicName?: string }
  /** Retries. Default: none. */
  readonly RetryPolicy?: {
    /** Wait before each attempt: a number of ms, or text such as `10s`; 0 or more. */
    readonly Delay: number | string
    /** Attempts after the first one, 0 to 100; each has its own topic. */
    readonly RetryAttempts: number
  }
}

/** One binding, named like its topic, and one cluster, `default`. */
export interface ResilientConsumer extends Configuration.Configuration {
  /** URL of the schema registry when values are Avro; otherwise undefined. */
  readonly schemaRegistryUrl: string | undefined
}

type Read = Effect.Effect<ResilientConsumer, EventBusError.ConfigurationValidation>

const root = "KafkaConsumer"
const shape = Shape.make(KafkaConsumer.ast)
const decodeKeys = decoder(KafkaConsumer)

/** Reads a file: JSON, with comments and trailing commas allowed, when its name ends with `.json`, otherwise YAML. Sections beside `KafkaConsumer` are ignored. Fails with `ConfigurationValidation`. */
export const load = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<ResilientConsumer, EventBusError.ConfigurationValidation> {
  const issues = Issues.make()
  const result = yield* Files.readBytes(path)
  if (!("bytes" in result)) {
    issues.unreadable(result.problem, ("allowed" in result && result.allowed) || "a file that can be read", {
      file: path
    })
    return yield* refuse(issues)
  }
  const content = Texts.decode(result.bytes, path, issues)
  return yield* content === undefined
    ? refuse(issues)
    : parse(content, { file: path, format: path.endsWith(".json") ? "json" : "yaml" })
})

/**
 * Reads a text with the root `KafkaConsumer`. `format` defaults to json, in which comments and trailing commas are allowed, as in .NET. `file` names the
 * text in issues and defaults to the format. Fails with `ConfigurationValidation`.
 */
export const parse = (
  content: string,
  options: { readonly format?: "json" | "yaml"; readonly file?: string } = {}
): Read =>
  Effect.suspend(() => {
    const { format = "json", file = format } = options
    const issues = Issues.make()
    const tree = Texts.parse(content, file, format === "json" ? "json-with-comments" : "yaml", issues)
    const below = Node.child(tree, root)
    if (tree !== undefined && below === undefined) {
      issues.add([root], "nothing", `a section ${root} at the top of the file`, Node.sourceLocation(tree))
    }
    return below === undefined ? refuse(issues) : read(below, [root], issues)
  })

/** Reads plain data, such as `Values`: the keys below `KafkaConsumer`. Fails with `ConfigurationValidation`. */
export const decode = (values: unknown): Read =>
  Effect.suspend(() => read(toNode(values, { name: "data" }), [], Issues.make()))

const refuse = (issues: Issues.Issues): Effect.Effect<never, EventBusError.ConfigurationValidation> =>
  Effect.fail(new EventBusError.ConfigurationValidation({ issues: issues.all() }))

const read = Effect.fnUntraced(function* (
  node: Node.Node,
  path: Node.Path,
  issues: Issues.Issues
): Effect.fn.Return<ResilientConsumer, EventBusError.ConfigurationValidation> {
  const keyPath = path.reduce<Node.KeyPath | undefined>((above, key) => ({ parent: above, key }), undefined)
  const keys = decodeKeys(canonical(node, shape, issues, keyPath), path, issues)
  if (!("value" in keys) || issues.all().length > 0) return yield* refuse(issues)
  const configuration = yield* Effect.catchTag(
    Configuration.decode(dataOf(keys.value)),
    "ConfigurationValidation",
    (error) => {
      for (const { path: inside, found, allowed } of error.issues) {
        issues.add([...path, ...keyOf(inside, keys.value.TopicName)], found, allowed, Node.sourceLocation(node))
      }
      return refuse(issues)
    }
  )
  return deepFreeze({ ...configuration, schemaRegistryUrl: keys.value.SchemaRegistryUrl })
})

/** The same settings in the connector's own configuration. */
const dataOf = (keys: Decoded) => {
  const { Delay = 0, RetryAttempts = 0 } = keys.RetryPolicy ?? {}
  return {
    eventbus: {
      clusters: { default: { brokers: keys.BootstrapServers } },
      bindings: new Map([
        [
          keys.TopicName,
          {
            topic: keys.TopicName,
            groupId: keys.GroupId,
            concurrency: keys.ConsumerNumber,
            naming: "dotted",
            deadLetter: { topic: keys.Error?.TopicName },
            retry: {
              blocking: { maxAttempts: 1 },
              // Tiers with equal delays would share a topic, but the seed names one topic for each attempt. Delays that differ by a millisecond keep
              // them apart.
              tiers: Array.from({ length: RetryAttempts }, (_, index) => ({ delayMs: Delay + index, maxAttempts: 1 }))
            }
          }
        ]
      ])
    }
  }
}

const keysOf = new Map<string, Node.Path>([
  ["topic", ["TopicName"]],
  ["groupId", ["GroupId"]],
  ["concurrency", ["ConsumerNumber"]],
  ["naming", ["TopicName"]],
  ["deadLetter", ["Error", "TopicName"]],
  ["retry", ["RetryPolicy"]]
])

/** Maps a path of the connector's configuration to the key of this file. */
const keyOf = (path: string, topic: string): Node.Path => {
  const binding = Node.formatPath(["eventbus", "bindings", topic])
  const [key] = path.startsWith(binding) ? (/\w+/.exec(path.slice(binding.length)) ?? []) : []
  return key === undefined ? [] : (keysOf.get(key) ?? [])
}

/**
 * A handler, or a function that makes one from the registry's URL (undefined: JSON), such as `(url) => Effect.map(Avro.orJson(url, Order), (value) =>
 * Handler.make({ value, handler }))` with `Avro` of `@eventbus/avro`.
 */
export type Input<R, E = never, RX = never> =
  | Handler<R>
  | ((schemaRegistryUrl: string | undefined) => Handler<R> | Effect.Effect<Handler<R>, E, RX>)

type Registered<R, E, RX> = Layer.Layer<
  EventBusConnector.EventBusConnector,
  E | EventBusError.ConfigurationValidation | EventBusError.BindingAlreadyExists | EventBusError.ConnectorClosed,
  R | Exclude<RX, Scope.Scope> | Broker.Broker
>

/**
 * Registers and starts the consumer with its handler. Closing the layer stops it. Fails with `ConfigurationValidation` when values are Avro and
 * `input` is a plain handler, which has no Avro decoder.
 */
export const layer = <R, E = never, RX = never>(
  consumer: ResilientConsumer,
  input: Input<R, E, RX>
): Registered<R, E, RX> =>
  Layer.unwrap(
    Effect.map(handlerOf(consumer, input), (handler) =>
      Configuration.layer(consumer, { byName: new Map(consumer.bindings.map(({ handler: name }) => [name, handler])) })
    )
  )

const handlerOf = <R, E, RX>(
  { schemaRegistryUrl: url }: ResilientConsumer,
  input: Input<R, E, RX>
): Effect.Effect<Handler<R>, E | EventBusError.ConfigurationValidation, RX> => {
  if (Predicate.isFunction(input)) {
    const made = input(url)
    return Effect.isEffect(made) ? made : Effect.succeed(made)
  }
  if (url === undefined) return Effect.succeed(input)
  const issues = Issues.make()
  const allowed = "no such key, for JSON: Avro needs a decoder of its own, given as (schemaRegistryUrl) => handler"
  // The message does not show the URL, since it may hold a password.
  issues.add([root, "SchemaRegistryUrl"], "a URL (not shown)", allowed)
  return refuse(issues)
}

/** `load` and `layer` in one step. */
export const layerFile = <R, E = never, RX = never>(path: string, input: Input<R, E, RX>): Registered<R, E, RX> =>
  Layer.unwrap(Effect.map(load(path), (consumer) => layer(consumer, input)))

/** `decode` and `layer` in one step, from code. */
export const layerValues = <R, E = never, RX = never>(values: Values, input: Input<R, E, RX>): Registered<R, E, RX> =>
  Layer.unwrap(Effect.map(decode(values), (consumer) => layer(consumer, input)))
