/**
 * Bindings and clusters from files, environment variables and plain data (connector seed §4.1, §7 and appendix).
 *
 * ```ts
 * import { Configuration, Handlers } from "@eventbus/config"
 * import { KafkaJs } from "@eventbus/kafkajs"
 * import { Effect, Layer } from "effect"
 *
 * const handlers = Handlers.make({ charge: ({ record }) => Effect.log(record.topic) })
 *
 * export const program = Effect.gen(function* () {
 *   const config = yield* Configuration.load("app.yaml", { profile: "prod" })
 *   return Configuration.layer(config, handlers).pipe(Layer.provide(KafkaJs.layer(config.clusters[0]!)))
 * })
 * ```
 *
 * Everything is checked before anything starts. `ConfigurationValidation` lists all mistakes, each with its path, the value, the allowed values, and
 * file, line and column.
 */
import { type Audit, Binding, type Broker, EventBusConnector, EventBusError, type Fleet } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as BindingSettings from "./BindingSettings.ts"
import type * as ClusterSettings from "./ClusterSettings.ts"
import type { Handlers } from "./Handlers.ts"
import * as Assemble from "./internal/assemble/assemble.ts"
import * as HandlerChecks from "./internal/assemble/handlerChecks.ts"
import * as NamedBinding from "./internal/assemble/namedBinding.ts"
import * as Operating from "./internal/assemble/operating.ts"
import * as SettingRules from "./internal/assemble/settingRules.ts"
import * as Overrides from "./internal/environment/environment.ts"
import * as Variables from "./internal/environment/variables.ts"
import { canonical } from "./internal/files/canonical.ts"
import * as Files from "./internal/files/files.ts"
import * as Texts from "./internal/files/texts.ts"
import { deepFreeze } from "./internal/schema/deepFreeze.ts"
import * as Shape from "./internal/schema/shape.ts"
import * as Issues from "./internal/tree/issues.ts"
import * as Node from "./internal/tree/node.ts"
import { overlay } from "./internal/tree/overlay.ts"
import { toNode } from "./internal/tree/plainData.ts"
import * as Settings from "./Settings.ts"

/** A configuration, complete and immutable. */
export interface Configuration {
  /** Clusters in the order of the file. Empty when the file has none; the program then provides the brokers. */
  readonly clusters: ReadonlyArray<ClusterSettings.ClusterSettings>
  /** Bindings in the order of the file. */
  readonly bindings: ReadonlyArray<BindingSettings.BindingSettings>
  /** The fleet that `layer` joins. Absent when the file has none. */
  readonly fleet?: Fleet.Settings
  /** The audit log of operators' actions, which `layer` provides, too. Absent when the file has none. */
  readonly audit?: Audit.Settings
}

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Options of `load`. */
export interface LoadOptions {
  /**
   * Profiles to lay over the file: `prod` reads `app-prod.yaml` over `app.yaml`. Later profiles win over earlier ones. Default: `EVENTBUS_PROFILE`
   * from `env`, several separated by commas; without it, none.
   */
  readonly profile?: string | ReadonlyArray<string>
  /** Variables for `${NAME}` and for keys (`EVENTBUS_BINDINGS_ORDERS_CONCURRENCY`), which win over all files. Default `process.env`. */
  readonly env?: Environment
  /** Handlers to check the bindings against, as `bindings` does, so that one failure lists all mistakes. Default: not checked. */
  readonly handlers?: Handlers<unknown>
}

/** Options of `parse`. */
export interface ParseOptions {
  /** Format of the text. Default yaml. */
  readonly format?: "yaml" | "json"
  /** Name of the text in issues, and base of relative paths such as `passwordFile`. Default: the format. */
  readonly file?: string
  /** Variables, as for `load`. Default none. */
  readonly env?: Environment
}

const rootShape = Shape.make(Settings.Root.ast)
const root = Shape.select(rootShape, "Struct")!
const bindingShape = Shape.make(Settings.Binding.ast)

/**
 * Reads a file with its includes, its profiles and the environment. The format is JSON when the name ends with `.json`, otherwise YAML. Fails with
 * `ConfigurationValidation`, which lists all mistakes.
 */
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

/** Reads a text. It may not include files. Fails with `ConfigurationValidation`, which lists all mistakes. */
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

/**
 * Reads plain data: the contents of a file as objects and arrays. `${NAME}` is not replaced. Fails with `ConfigurationValidation`, which lists all
 * mistakes.
 */
export const decode = (data: unknown): Effect.Effect<Configuration, EventBusError.ConfigurationValidation> =>
  Effect.suspend(() => {
    const issues = Issues.make()
    const tree = canonical(toNode(data, { name: "data" }), rootShape, issues)
    return complete(refuseInclude(tree, issues), issues)
  })

/** Reads one binding from plain data, such as the body of a request. Paths of issues begin below the binding. Fails with `ConfigurationValidation`. */
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
      ? Effect.fail(new EventBusError.ConfigurationValidation({ binding: name, issues: withoutLocations(all) }))
      : Effect.succeed(deepFreeze(settings))
  })

/** Options of `decodeNamedBinding` and `parseNamedBinding`. */
export interface NamedBindingOptions {
  /** Handlers to check the binding against, so that one failure lists all mistakes. Default: not checked. */
  readonly handlers?: Handlers<unknown>
}

/**
 * Reads one binding from plain data with its name under the key `name`, beside its settings. Paths of issues begin at the top of the data. Fails with
 * `ConfigurationValidation`, which lists the first 200 mistakes and counts the rest.
 */
export const decodeNamedBinding = (
  data: unknown,
  options: NamedBindingOptions = {}
): Effect.Effect<BindingSettings.BindingSettings, EventBusError.ConfigurationValidation> =>
  Effect.suspend(() => named(toNode(data, { name: "data" }), Issues.make(Issues.mostOfRequest), options))

/** The same from a JSON text, such as the body of a request. It also refuses a key that occurs twice. */
export const parseNamedBinding = (
  text: string,
  options: NamedBindingOptions = {}
): Effect.Effect<BindingSettings.BindingSettings, EventBusError.ConfigurationValidation> =>
  Effect.suspend(() => {
    const issues = Issues.make(Issues.mostOfRequest)
    return named(Texts.parse(text, "body", "json", issues), issues, options)
  })

const named = (node: Node.Node | undefined, issues: Issues.Issues, { handlers }: NamedBindingOptions) => {
  const settings = node && NamedBinding.decode(node, issues, handlers)
  const all = issues.all()
  if (settings !== undefined && all.length === 0) return Effect.succeed(deepFreeze(settings))
  // A rule about the name has no path below a binding; here it has one.
  const below = node?._tag === "Section" ? all.map((issue) => ({ ...issue, path: issue.path || "name" })) : all
  return Effect.fail(new EventBusError.ConfigurationValidation({ issues: withoutLocations(below) }))
}

/** Data has no file to point into, so its issues have no location. */
const withoutLocations = (issues: ReadonlyArray<EventBusError.ConfigurationIssue>) =>
  issues.map(({ path, found, allowed }) => ({ path, found, allowed }))

const refuseInclude = (tree: Node.Node | undefined, issues: Issues.Issues): Node.Node | undefined => {
  const include = Node.child(tree, "include")
  if (include !== undefined)
    issues.add(["include"], "an include", "includes in a file that is loaded", Node.sourceLocation(include))
  return tree
}

/** Applies the environment: variables in texts, variables as keys, and secrets from files. */
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

/** Decodes a tree and checks the rules between its settings. */
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
  return deepFreeze(configuration)
})

/** Lays each binding over `eventbus.defaults`. */
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
 * The bindings with their handlers. Fails with `ConfigurationValidation` for missing handlers, for handlers that do not fit the settings, and for
 * error names that a handler does not declare; it lists all of them.
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

/** The bindings without handlers, for plans and checks. A record that one of them receives is a defect. */
export const withoutHandlers = (configuration: Configuration): ReadonlyArray<Binding.Binding<never>> =>
  configuration.bindings.map(SettingRules.withoutHandler)

/**
 * Checks the bindings as `bindings` does, then registers and starts them, as a process of the fleet where the file has one. Closing the layer stops them. The layer provides `Fleet`
 * and `Audit` beside the connector where the file has them, so that `EventBusAdmin.layer` over it finds them.
 */
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
      const connector = first === undefined ? EventBusConnector.layer : Layer.mergeAll(first, ...others)
      return Operating.layer(configuration, connector)
    })
  )

/** `load` and `layer` in one step, for a program whose brokers do not come from the file. */
export const layerFile = <R>(
  file: string,
  handlers: Handlers<R>,
  options: LoadOptions = {}
): Layer.Layer<
  EventBusConnector.EventBusConnector,
  EventBusError.ConfigurationValidation | EventBusError.BindingAlreadyExists | EventBusError.ConnectorClosed,
  R | Broker.Broker
> => Layer.unwrap(Effect.map(load(file, options), (configuration) => layer(configuration, handlers)))
