/**
 * Registers a binding from its properties: the decoder of configuration files reads them, so that code, files and requests accept the same (ruling 38).
 */
import { type BindingSettings, Configuration, type Handlers } from "@eventbus/config"
import { type Broker, Clusters, type EventBusConnector, EventBusError } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { keyOf } from "./answersOf.ts"
import { parsed } from "./requests/requests.ts"

/** Properties that are read, or could not be. */
export interface Reading {
  /** As plain data, as far as they are any. */
  readonly data: unknown
  readonly read: (
    options: Configuration.NamedBindingOptions
  ) => Effect.Effect<BindingSettings.BindingSettings, EventBusError.ConfigurationValidation>
}

export const fromData = (data: unknown): Reading => ({
  data,
  read: (options) => Configuration.decodeNamedBinding(data, options)
})

export const fromJson = (text: string): Reading => ({
  // The decoder says what is wrong with a text that is no JSON.
  data: Result.getOrUndefined(parsed(text)),
  read: (options) => Configuration.parseNamedBinding(text, options)
})

type Connector = EventBusConnector.EventBusConnector["Service"]

type Failure =
  | EventBusError.ConfigurationValidation
  | EventBusError.UnknownCluster
  | EventBusError.BindingAlreadyExists
  | EventBusError.ConnectorClosed

/** A program that is shutting down takes no new bindings. */
export const refused = ({ data }: Reading): EventBusError.ConnectorClosed =>
  new EventBusError.ConnectorClosed({ binding: nameOf(data).binding ?? "" })

/** Answers the key of the registered binding. */
export const run = Effect.fnUntraced(function* <R>(
  { data, read }: Reading,
  handlers: Handlers.Handlers<R> | undefined,
  connector: Connector
): Effect.fn.Return<string, Failure, R | Broker.Broker> {
  const settings = yield* Effect.result(read(handlers === undefined ? {} : { handlers }))
  const cluster = yield* Effect.result(Clusters.get(aliasOf(data)))
  const others = [
    ...(Result.isFailure(settings) ? settings.failure.issues : []),
    ...(handlers === undefined ? [noHandlers(data)] : [])
  ]
  if (Result.isFailure(settings) || handlers === undefined || others.length > 0) {
    // The list says everything at once. The decoder has reported an alias that is no text.
    const unknown = Result.isFailure(cluster) && !others.some(({ path }) => path === "cluster")
    const issues = unknown ? [...others, unknownCluster(cluster.failure)] : others
    return yield* new EventBusError.ConfigurationValidation({ ...nameOf(data), issues })
  }
  if (Result.isFailure(cluster)) return yield* cluster.failure
  const bindings = yield* Configuration.bindings({ clusters: [], bindings: [settings.success] }, handlers)
  for (const binding of bindings) yield* connector.register(binding)
  return keyOf(settings.success)
})

const propertyOf = (data: unknown, key: string): unknown => (Predicate.isObject(data) ? data[key] : undefined)

const aliasOf = (data: unknown): string => {
  const alias = propertyOf(data, "cluster")
  return typeof alias === "string" ? alias : "default"
}

const nameOf = (data: unknown): { readonly binding?: string } => {
  const name = propertyOf(data, "name")
  return typeof name === "string" ? { binding: name } : {}
}

const unknownCluster = ({ cluster, known }: EventBusError.UnknownCluster): EventBusError.ConfigurationIssue => ({
  path: "cluster",
  found: JSON.stringify(cluster),
  allowed: `one of the clusters that are known: ${known.join(", ")}`
})

const noHandlers = (data: unknown): EventBusError.ConfigurationIssue => ({
  path: "handler",
  found: JSON.stringify(propertyOf(data, "handler") ?? propertyOf(data, "name")) ?? "nothing",
  allowed: "a handler of EventBusAdmin.layer({ handlers }), and this program gives none"
})
