/**
 * Bindings and clusters from files, environment variables and plain data (connector seed §4.1, §7 and appendix).
 *
 * ```ts
 * const config = yield* Configuration.load("app.yaml", { profile: "prod" })
 * const Main = Configuration.layer(config, handlers).pipe(Layer.provide(KafkaJs.layer(config.clusters[0]!)))
 * ```
 *
 * Everything is checked before anything is started, and all mistakes are told at once: `ConfigurationValidation` has one issue for each, with path, what
 * was found, what is allowed, and file, line and column.
 */
import { Binding, type Broker, EventBusConnector, EventBusError } from "@eventbus/core"
import { Effect, Layer } from "effect"
import type * as BindingSettings from "./BindingSettings.ts"
import type * as ClusterSettings from "./ClusterSettings.ts"
import type { Handlers } from "./Handlers.ts"
import * as Assemble from "./internal/assemble/assemble.ts"
import * as Coherence from "./internal/assemble/coherence.ts"
import * as HandlerChecks from "./internal/assemble/handlerChecks.ts"
import * as Overrides from "./internal/environment/environment.ts"
import * as Variables from "./internal/environment/variables.ts"
import { canonical } from "./internal/files/canonical.ts"
import * as Files from "./internal/files/files.ts"
import * as Texts from "./internal/files/texts.ts"
import { frozen } from "./internal/schema/frozen.ts"
import * as Shape from "./internal/schema/shape.ts"
import * as Issues from "./internal/tree/issues.ts"
import * as Node from "./internal/tree/node.ts"
import { overlay } from "./internal/tree/overlay.ts"
import { toNode } from "./internal/tree/plainData.ts"
import * as Settings from "./Settings.ts"

/** Complete and immutable. */
export interface Configuration {
  /** In the order of the file. Empty when it names none: then the program says which clusters there are. */
  readonly clusters: ReadonlyArray<ClusterSettings.ClusterSettings>
  /** In the order of the file. */
  readonly bindings: ReadonlyArray<BindingSettings.BindingSettings>
}

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>

export interface LoadOptions {
  /**
   * `prod` lays `app-prod.yaml` over `app.yaml`; of several, later ones over earlier ones. Default: `EVENTBUS_PROFILE` of the variables, with commas
   * between several; else none.
   */
  readonly profile?: string | ReadonlyArray<string>
  /** For `${NAME}` and for keys by variable (`EVENTBUS_BINDINGS_ORDERS_CONCURRENCY`), which win over all files. Default `process.env`. */
  readonly env?: Environment
  /** Checks as well whether each binding has a handler that fits, as `bindings` does: for who wants all mistakes at once. Default: not checked. */
  readonly handlers?: Handlers<unknown>
}

export interface ParseOptions {
  /** Default yaml. */
  readonly format?: "yaml" | "json"
  /** Names the text in issues, and what `passwordFile` and its like are relative to. Default: the format. */
  readonly file?: string
  /** As for `load`. Default: none. */
  readonly env?: Environment
}

const rootShape = Shape.make(Settings.Root.ast)
const root = Shape.select(rootShape, "Struct")!
const bindingShape = Shape.make(Settings.Binding.ast)

/** Reads a file, what it includes, its profiles and the environment. JSON when its name ends with `.json`, else YAML. */
export const load = Effect.fnUntraced(function* (
  path: string,
  options: LoadOptions = {}
): Effect.fn.Return<Configuration, EventBusError.ConfigurationValidation> {
  const issues = Issues.make()
  const variables = Variables.fromRecord(options.env ?? process.env)
  const read = Files.reader(rootShape, issues)
  let tree = yield* read(path)
  for (const profile of profilesOf(options.profile ?? variables.get("EVENTBUS_PROFILE") ?? [])) {
    if (!/^[\w-]+$/.test(profile)) {
      issues.unreadable(`profile ${JSON.stringify(profile)}`, "a profile of letters, digits, _ and -", { file: path })
      continue
    }
    const top = yield* read(Files.profileFile(path, profile))
    if (top !== undefined) tree = overlay(tree, top)
  }
  return yield* finish(tree, variables, issues, options.handlers)
})

const profilesOf = (profile: string | ReadonlyArray<string>): ReadonlyArray<string> =>
  (typeof profile === "string" ? profile.split(",") : profile).map((each) => each.trim()).filter((each) => each !== "")

/** Reads a text, which includes nothing. */
export const parse = Effect.fnUntraced(function* (
  text: string,
  options: ParseOptions = {}
): Effect.fn.Return<Configuration, EventBusError.ConfigurationValidation> {
  const { format = "yaml", file = format, env = {} } = options
  const issues = Issues.make()
  const node = Texts.parse(text, file, format, issues)
  const tree = node === undefined ? undefined : canonical(node, rootShape, issues)
  return yield* finish(refuseInclude(tree, issues), Variables.fromRecord(env), issues)
})

/** Reads plain data: what a file would hold, as objects and arrays. Texts are taken as they are, without variables. */
export const decode = (data: unknown): Effect.Effect<Configuration, EventBusError.ConfigurationValidation> =>
  Effect.suspend(() => {
    const issues = Issues.make()
    const tree = canonical(toNode(data, { name: "data" }), rootShape, issues)
    return complete(refuseInclude(tree, issues), issues)
  })

/** Reads one binding from plain data, such as the body of a request. Paths of issues begin below the binding. */
export const decodeBinding = (
  name: string,
  data: unknown
): Effect.Effect<BindingSettings.BindingSettings, EventBusError.ConfigurationValidation> =>
  Effect.suspend(() => {
    const issues = Issues.make()
    const tree = canonical(toNode(data, { name: "data" }), bindingShape, issues)
    const settings = Assemble.one(name, tree, issues)
    const all = issues.all()
    return settings === undefined || all.length > 0
      ? Effect.fail(new EventBusError.ConfigurationValidation({ binding: name, issues: withoutPlaces(all) }))
      : Effect.succeed(frozen(settings))
  })

/** There is nothing to look at behind a place in data. */
const withoutPlaces = (issues: ReadonlyArray<EventBusError.ConfigurationIssue>) =>
  issues.map(({ path, found, allowed }) => ({ path, found, allowed }))

const refuseInclude = (tree: Node.Node | undefined, issues: Issues.Issues): Node.Node | undefined => {
  const include = Node.child(tree, "include")
  if (include !== undefined)
    issues.add(["include"], "an include", "includes in a file that is loaded", Node.place(include))
  return tree
}

/** With the environment: variables in texts, keys by variable, and secrets from files. */
const finish = Effect.fnUntraced(function* (
  files: Node.Node | undefined,
  variables: Variables.Variables,
  issues: Issues.Issues,
  handlers?: Handlers<unknown>
) {
  const overridden = Overrides.override(files, root, variables, issues)
  const tree = overridden && Variables.interpolate(overridden, variables, issues)
  const whole = tree && (yield* Files.readSecrets(tree, rootShape, issues))
  return yield* complete(whole, issues, handlers)
})

/** From a tree to settings that fit together. */
const complete = Effect.fnUntraced(function* (
  tree: Node.Node | undefined,
  issues: Issues.Issues,
  handlers?: Handlers<unknown>
): Effect.fn.Return<Configuration, EventBusError.ConfigurationValidation> {
  const configuration = tree && issues.isReadable() ? Assemble.all(withDefaults(tree), issues, handlers) : undefined
  const all = issues.all()
  if (configuration === undefined || all.length > 0) {
    return yield* new EventBusError.ConfigurationValidation({ issues: all })
  }
  return frozen(configuration)
})

/** `eventbus.defaults` below each binding. */
const withDefaults = (tree: Node.Node): Node.Node => {
  const eventbus = Node.child(tree, "eventbus")
  const defaults = Node.child(eventbus, "defaults")
  const bindings = Node.child(eventbus, "bindings")
  if (defaults?._tag !== "Section" || bindings?._tag !== "Section" || eventbus?._tag !== "Section") return tree
  const entries = bindings.entries.map((entry) => ({
    ...entry,
    value: entry.value._tag === "Section" ? overlay(defaults, entry.value) : entry.value
  }))
  const below: Node.Section = {
    ...eventbus,
    entries: [
      ...eventbus.entries.filter(({ key }) => key !== "bindings"),
      { key: "bindings", offset: bindings.offset, value: { ...bindings, entries } }
    ]
  }
  return overlay(tree, {
    ...(tree as Node.Section),
    entries: [{ key: "eventbus", offset: eventbus.offset, value: below }]
  })
}

/**
 * The bindings with their handlers. Refused, all at once: a handler that is missing, one that does not fit the settings, and an error name that the
 * handler does not know.
 */
export const bindings = <R>(
  configuration: Configuration,
  handlers: Handlers<R>
): Effect.Effect<ReadonlyArray<Binding.Binding<R>>, EventBusError.ConfigurationValidation> =>
  Effect.suspend(() => {
    const issues = configuration.bindings.flatMap((settings) =>
      HandlerChecks.problems(settings, handlers).map(({ path, ...problem }) => ({
        ...problem,
        path: Node.formatPath(["eventbus", "bindings", settings.name, ...path])
      }))
    )
    return issues.length > 0
      ? Effect.fail(new EventBusError.ConfigurationValidation({ issues }))
      : Effect.succeed(configuration.bindings.map((settings) => handlers.byName.get(settings.handler)!.bind(settings)))
  })

/** The bindings without code, for plans and checks: a record that one gets is a defect. */
export const withoutHandlers = (configuration: Configuration): ReadonlyArray<Binding.Binding<never>> =>
  configuration.bindings.map(Coherence.withoutHandler)

/** Registers and starts all bindings, when each has its handler and all fit together; closing the layer stops them. */
export const layer = <R>(
  configuration: Configuration,
  handlers: Handlers<R>
): Layer.Layer<
  EventBusConnector.EventBusConnector,
  EventBusError.ConfigurationValidation | EventBusError.BindingAlreadyExists | EventBusError.ConnectorClosed,
  R | Broker.Broker
> =>
  Layer.unwrap(
    Effect.map(bindings(configuration, handlers), (all) => {
      const [first, ...others] = all.map((binding) => Binding.layer(binding))
      return first === undefined ? EventBusConnector.layer : Layer.mergeAll(first, ...others)
    })
  )

/** `load` and `layer` in one, for a program whose brokers do not come from the file. */
export const layerFile = <R>(
  file: string,
  handlers: Handlers<R>,
  options: LoadOptions = {}
): Layer.Layer<
  EventBusConnector.EventBusConnector,
  EventBusError.ConfigurationValidation | EventBusError.BindingAlreadyExists | EventBusError.ConnectorClosed,
  R | Broker.Broker
> => Layer.unwrap(Effect.map(load(file, options), (configuration) => layer(configuration, handlers)))
