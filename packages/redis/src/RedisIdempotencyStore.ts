/**
 * The `IdempotencyStore` of `@eventbus/core` in Redis 6 or later, or in a compatible store such as Valkey.
 *
 * An idempotency key is one Redis key with a time to live. Its value is the token of the claim during the lease, and `done` during the retention. Every call
 * is one script on that key, so it is atomic, in a cluster too. Redis's own clock decides what has expired.
 *
 * When Redis loses a key, its record is handled again if it is delivered again. Redis loses keys that it evicts (use `maxmemory-policy noeviction`), and the
 * last writes before a failover or, without `appendfsync always`, before a crash.
 */
import { IdempotencyStore, Kinds, Ranges } from "@eventbus/core"
import { createClient, type RedisClientOptions } from "@redis/client"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

/** How keys are named in Redis. */
export interface KeyOptions {
  /** Put before every key. Default `eventbus:idempotency:`. Programs that share a Redis and consume different Kafka clusters need different prefixes. */
  readonly prefix?: string
}

/** How to reach Redis. */
export interface Options extends KeyOptions {
  /** Host name or address. Default `127.0.0.1`. */
  readonly host?: string
  /** TCP port. Default 6379. */
  readonly port?: number
  /** `true` uses TLS and trusts the certificate authorities of Node.js. Default `false`. */
  readonly tls?: boolean
  /** Number of the database, 0 or more. Default 0. */
  readonly database?: number
  /** User of Redis's ACLs. Default: Redis's user `default`. */
  readonly username?: string
  /** Password of the user. Default none. */
  readonly password?: Redacted.Redacted
  /** Longest time that opening the layer waits for Redis. Default 10 seconds. Later the client reconnects by itself, and calls fail at once meanwhile. */
  readonly connectTimeout?: Duration.Input
}

/** The part of a Redis client that the store uses. A connected client of `@redis/client` has it, also one for a cluster, a pool or sentinels. */
export interface Scripting {
  /** Runs a Lua script. */
  readonly eval: (
    script: string,
    options: { readonly keys: Array<string>; readonly arguments: Array<string> }
  ) => Promise<unknown>
}

const ofClient = Kinds.section({}, { eval: Kinds.func }, "a Redis client with `eval`")

const ofConnection = Kinds.section({
  ...{ port: Ranges.clients.port, database: Ranges.clients.database, connectTimeout: Ranges.clients.connectTimeout },
  ...{ prefix: Kinds.string, host: Kinds.string, username: Kinds.string },
  ...{ tls: Kinds.flag, password: Kinds.redacted }
})

/** The store on the caller's client. Throws `ConfigurationValidation` for options of another kind. A client that queues calls while it is offline answers late; with `disableOfflineQueue` it fails at once. */
export const make = (client: Scripting, options: KeyOptions = {}): IdempotencyStore.IdempotencyStore["Service"] => {
  Kinds.refuse([
    ...ofClient("RedisIdempotencyStore.client", client),
    ...Kinds.section({ prefix: Kinds.string })("RedisIdempotencyStore", options)
  ])
  const prefix = options.prefix ?? "eventbus:idempotency:"
  const run = (
    operation: IdempotencyStore.IdempotencyStoreError["operation"],
    script: string,
    key: string,
    ...values: ReadonlyArray<string>
  ) =>
    Effect.flatMap(
      Effect.tryPromise({
        try: () => client.eval(script, { keys: [prefix + key], arguments: [...values] }),
        catch: failed(operation)
      }),
      (reply) => {
        const number = numberOf(reply)
        return number === undefined ? Effect.fail(notANumber(operation, reply)) : Effect.succeed(number)
      }
    )
  const isHeld = (...call: Parameters<typeof run>) => Effect.map(run(...call), (reply) => reply === 1)

  return IdempotencyStore.IdempotencyStore.of({
    name: "redis",
    lookUp: Effect.fnUntraced(function* (key) {
      const reply = yield* run("look up", scripts.lookUp, key)
      if (reply === free) return { _tag: "Free" }
      if (reply === done) return { _tag: "Done" }
      return { _tag: "InProgress", untilMillis: (yield* Clock.currentTimeMillis) + reply }
    }),
    begin: Effect.fnUntraced(function* (key, { lease }) {
      const id = crypto.randomUUID()
      const reply = yield* run("begin", scripts.begin, key, id, millis(lease))
      if (reply === started) return { _tag: "Started", token: { key, id } }
      if (reply === done) return { _tag: "Done" }
      return { _tag: "InProgress", untilMillis: (yield* Clock.currentTimeMillis) + reply }
    }),
    complete: ({ key, id }, { retention }) => isHeld("complete", scripts.complete, key, id, millis(retention)),
    abandon: ({ key, id }) => isHeld("abandon", scripts.abandon, key, id),
    renew: ({ key, id }, { lease }) => isHeld("renew", scripts.renew, key, id, millis(lease))
  })
}

/** The store on a connection of its own, closed with the layer. Dies with `ConfigurationValidation` for options of another kind, which shows no password. Fails with `IdempotencyStoreError` (`operation: "open"`) when Redis does not answer in time. */
export const layer = (
  options: Options = {}
): Layer.Layer<IdempotencyStore.IdempotencyStore, IdempotencyStore.IdempotencyStoreError> =>
  Layer.effect(
    IdempotencyStore.IdempotencyStore,
    Effect.map(connect(options), (client) => make(client, options))
  )

const connect = Effect.fnUntraced(function* (options: Options) {
  Kinds.refuse(ofConnection("RedisIdempotencyStore", options))
  const timeout = Duration.fromInputUnsafe(options.connectTimeout ?? "10 seconds")
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => createClient(clientOptions(options, timeout))),
    (client) => Effect.sync(() => client.destroy())
  )
  // The client tries again after each error, so its last one is the reason when time runs out. Without a listener Node.js would throw it.
  let lastError: unknown
  client.on("error", (error) => {
    lastError = error
  })
  yield* Effect.tryPromise({ try: () => client.connect(), catch: failed("open") }).pipe(
    Effect.timeoutOrElse({
      duration: timeout,
      orElse: () =>
        Effect.fail(
          failed("open")(
            new Cause.TimeoutError(
              `no connection within ${Duration.format(timeout)}${lastError instanceof Error ? `: ${lastError.message}` : ""}`
            )
          )
        )
    })
  )
  return client
})

const clientOptions = (options: Options, connectTimeout: Duration.Duration) =>
  ({
    socket: {
      host: options.host ?? "127.0.0.1",
      port: options.port ?? 6379,
      connectTimeout: Duration.toMillis(connectTimeout),
      ...(options.tls === true ? { tls: true } : {})
    },
    database: options.database ?? 0,
    ...(options.username === undefined ? {} : { username: options.username }),
    ...(options.password === undefined ? {} : { password: Redacted.value(options.password) }),
    // A queued claim would be made after a reconnection, when its caller has given up, and block its key.
    disableOfflineQueue: true
  }) satisfies RedisClientOptions

/** Replies of `begin` and `lookUp`. Any other reply is the number of milliseconds that another claim still lasts. */
const started = -1
const done = -2
const free = -3

/** Clients may give the whole numbers of Redis as texts or as BigInts. Undefined for any other reply. */
const numberOf = (reply: unknown): number | undefined => {
  const number = typeof reply === "string" || typeof reply === "bigint" ? Number(reply) : reply
  return typeof number === "number" && Number.isSafeInteger(number) && reply !== "" ? number : undefined
}

const notANumber = (operation: IdempotencyStore.IdempotencyStoreError["operation"], reply: unknown) =>
  failed(operation)(new TypeError(`the script's reply is no whole number, but a value of type ${typeof reply}`))

/** KEYS[1] is the key, ARGV[1] the token, ARGV[2] a time to live in milliseconds. */
const scripts = {
  lookUp: `
    local value = redis.call('GET', KEYS[1])
    if not value then return ${free} end
    if value == 'done' then return ${done} end
    return math.max(0, redis.call('PTTL', KEYS[1]))`,
  begin: `
    if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return ${started} end
    if redis.call('GET', KEYS[1]) == 'done' then return ${done} end
    return math.max(0, redis.call('PTTL', KEYS[1]))`,
  complete: `
    if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
    redis.call('SET', KEYS[1], 'done', 'PX', ARGV[2])
    return 1`,
  abandon: `
    if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
    return redis.call('DEL', KEYS[1])`,
  renew: `
    if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
    return redis.call('PEXPIRE', KEYS[1], ARGV[2])`
}

/** Redis accepts whole milliseconds from 1 on. */
const millis = (duration: Duration.Duration): string => String(Math.max(1, Math.ceil(Duration.toMillis(duration))))

const failed = (operation: IdempotencyStore.IdempotencyStoreError["operation"]) => (cause: unknown) =>
  new IdempotencyStore.IdempotencyStoreError({ store: "redis", operation, retryable: true, cause })
