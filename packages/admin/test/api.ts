/** A program in memory with the admin API, called as a framework calls it. */
import { AdminServer, AdminWeb, Authorizer, EventBusAdmin, type Mask, OutboxPort } from "@eventbus/admin"
import { Handlers } from "@eventbus/config"
import { Audit, Binding, Broker, Clusters, EventBusConnector, Fleet, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Context, Effect, Exit, Layer, Logger, Metric, Redacted, Schema, Scope } from "effect"
import { HttpServer } from "effect/http"

export const token = "the-token-of-the-operator"

export const everything = Authorizer.fromTokens([
  {
    token: Redacted.make(token),
    name: "operator",
    permissions: ["view", "view-payload", "operate", "replay", "transform", "discard", "admin"]
  }
])

export class Refused extends Schema.TaggedError<Refused>()("Refused", {}) {}

export const handlers = Handlers.make({ charge: () => Effect.void, count: () => Effect.void })

interface BindingOptions {
  readonly topic?: string
  readonly cluster?: string
  readonly handler?: (value: string) => Effect.Effect<void, Refused>
  readonly autoStartup?: boolean
}

/** A binding that dead-letters the value `bad`. */
export const binding = (name = "orders", options: BindingOptions = {}) =>
  Binding.make(name, {
    topic: options.topic ?? "orders",
    groupId: `${name}-group`,
    cluster: options.cluster ?? "default",
    autoStartup: options.autoStartup ?? true,
    value: Serde.string,
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 minute", "5 minutes"] }),
    onError: { Refused: Route.deadLetter("refused") },
    handler: ({ value }) => options.handler?.(value) ?? (value === "bad" ? Effect.fail(new Refused()) : Effect.void)
  })

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: the JSON of an answer
  readonly body: any
}

export interface CallOptions {
  readonly token?: string | undefined
  readonly body?: unknown
  /** The body as it is. */
  readonly text?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly remoteAddress?: string
}

/** The answer as text, and as JSON where it is some. */
export const read = (response: Response): Effect.Effect<Answer> =>
  Effect.map(
    Effect.promise(() => response.text()),
    (text) => {
      const isJson = (response.headers.get("content-type") ?? "").startsWith("application/json")
      const { status, headers } = response
      return { status, headers, text, body: isJson && text !== "" ? JSON.parse(text) : undefined }
    }
  )

export const callOf =
  (web: AdminWeb.AdminWeb) =>
  (method: string, path: string, options: CallOptions = {}): Effect.Effect<Answer> => {
    const { token: bearer = token, body, text = body === undefined ? undefined : JSON.stringify(body) } = options
    const headers = {
      ...(bearer === "" ? {} : { authorization: `Bearer ${bearer}` }),
      ...(text === undefined ? {} : { "content-type": "application/json" }),
      ...options.headers
    }
    const request = new Request(`http://localhost${path}`, {
      method,
      headers,
      ...(text === undefined ? {} : { body: text })
    })
    const { remoteAddress } = options
    return Effect.flatMap(
      Effect.promise(() => web.handler(request, remoteAddress === undefined ? {} : { remoteAddress })),
      read
    )
  }

interface Options extends Omit<AdminWeb.Options, "authorizer"> {
  /** Undefined for none. Default: one that knows `token`. */
  readonly authorizer?: Authorizer.Authorizer | undefined
  readonly bindings?: ReadonlyArray<Binding.Binding<never>>
  readonly handlers?: Handlers.Handlers<never>
  /** Default: no audit log. */
  readonly audit?: Audit.Settings
  readonly mask?: Mask.Mask
  readonly maskText?: Mask.MaskText
  /** Aliases beside `default`, each a name of the same cluster. */
  readonly clusters?: ReadonlyArray<string>
  /** The fleet that the program joins. Default: none. */
  readonly fleet?: Fleet.Settings
  /** The outbox of the program. Default: none. */
  readonly outbox?: OutboxPort.OutboxPort["Service"]
  /** The cluster of another program. Default: one of its own. */
  readonly memory?: Effect.Success<ReturnType<typeof MemoryBroker.make>>
}

/** The API once more, over the same program, and how often it has looked at the bindings. */
export const counting = Effect.fnUntraced(function* (
  { admin, context }: Pick<Effect.Success<ReturnType<typeof make>>, "admin" | "context">,
  options: AdminWeb.Options = { authorizer: everything },
  list: EventBusAdmin.EventBusAdmin["Service"]["list"] = admin.list
) {
  let looks = 0
  const look = Effect.suspend(() => {
    looks++
    return list
  })
  const counted = { ...admin, list: look }
  const web = yield* Effect.provideContext(
    AdminWeb.make(options),
    Context.add(context, EventBusAdmin.EventBusAdmin, counted)
  )
  return { web, admin: counted, looks: () => looks }
})

/** Starts a program on a broker in memory. Its metrics are its own, and nothing is logged. */
export const start = (options: Options = {}) =>
  Effect.gen(function* () {
    const memory = options.memory ?? (yield* MemoryBroker.make())
    if (options.memory === undefined)
      for (const topic of ["orders", "payments"]) yield* memory.createTopic(topic, { partitions: 1 })
    const append = (topic: string, ...values: ReadonlyArray<string>) =>
      memory.append(
        topic,
        0,
        values.map((value) => ({ key: null, value: new TextEncoder().encode(value) }))
      )
    return { ...(yield* startOn(memory.broker, options)), memory, append }
  })

/** The same on another broker. */
export const startOn = (broker: Broker.Broker["Service"], options: Options) =>
  Effect.provide(make(broker, options), Logger.layer([]))

const make = Effect.fnUntraced(
  function* (
    connected: Broker.Broker["Service"],
    {
      bindings = [binding()],
      clusters = [],
      handlers: own,
      audit,
      mask,
      maskText,
      fleet,
      outbox,
      memory: _,
      ...routes
    }: Options
  ) {
    const scope = yield* Effect.acquireRelease(Scope.make(), (open) => Scope.close(open, Exit.void))
    const broker = Layer.succeed(Broker.Broker, connected)
    const program = EventBusAdmin.layer({
      handlers: own ?? handlers,
      ...(mask === undefined ? {} : { mask }),
      ...(maskText === undefined ? {} : { maskText })
    }).pipe(
      Layer.provideMerge(EventBusConnector.layer),
      Layer.provideMerge(audit === undefined ? Layer.empty : Audit.layer(audit)),
      Layer.provideMerge(outbox === undefined ? Layer.empty : Layer.succeed(OutboxPort.OutboxPort, outbox)),
      Layer.provideMerge(fleet === undefined ? Layer.empty : Fleet.layer(fleet)),
      Layer.provideMerge(Clusters.layerMap(new Map(["default", ...clusters].map((alias) => [alias, broker]))))
    )
    const context = yield* Layer.buildWithScope(program, scope)
    if (fleet !== undefined)
      yield* Effect.orDie(
        Effect.provideContext(
          Effect.flatMap(Effect.fromOption(Context.getOption(context, Fleet.Fleet)), (own) => own.createTopics),
          context
        )
      )
    const connector = Context.get(context, EventBusConnector.EventBusConnector)
    for (const each of bindings) yield* Effect.provideContext(connector.register(each), context)
    const { authorizer, ...options } = { authorizer: everything, ...routes }
    const web = yield* Effect.provideContext(
      AdminWeb.make(authorizer === undefined ? options : { ...options, authorizer }),
      context
    )
    return {
      connector,
      admin: Context.get(context, EventBusAdmin.EventBusAdmin),
      web,
      context,
      call: callOf(web),
      /** Closes the connector, and so its bindings. */
      close: Scope.close(scope, Exit.void)
    }
  },
  (effect) =>
    Effect.provideServiceEffect(
      effect,
      Metric.MetricRegistry,
      Effect.sync(() => new Map())
    )
)

/** The server of its own over a service, and its port. */
export const ownServer = (admin: EventBusAdmin.EventBusAdmin["Service"], prefix: `/${string}` = "/eventbus") => {
  const program = Layer.succeed(EventBusAdmin.EventBusAdmin, admin)
  return Layer.build(AdminServer.layer(program, { port: 0, host: "127.0.0.1", authorizer: everything, prefix })).pipe(
    Effect.map((context) => Context.get(context, HttpServer.HttpServer).address),
    Effect.map((address) => ("port" in address ? address.port : 0)),
    Effect.provide(Logger.layer([]))
  )
}

/** Asks again until the answer is as it should be, or for half a minute. */
export const eventually = <A, E, R>(
  ask: Effect.Effect<A, E, R>,
  holds: (answer: A) => boolean
): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    for (let round = 0; ; round++) {
      const answer = yield* ask
      if (holds(answer) || round === 1_500) return answer
      yield* Effect.sleep("20 millis")
    }
  })
