/**
 * The `IdempotencyStore` of `@eventbus/core` in Redis 6 or later, or what is compatible with it, such as Valkey.
 *
 * A key is one Redis key with a time to live: the token of the claim while it lasts, then `done` for the retention. Every call is one script
 * on that key, so it is atomic, in a cluster too. Redis' own time decides what has run out.
 *
 * What Redis loses is handled again if it is delivered again: keys that it evicts (use `maxmemory-policy noeviction`), and the last writes
 * before a failover or, without `appendfsync always`, a crash.
 */
import { IdempotencyStore } from "@eventbus/core"
import { createClient, type RedisClientOptions } from "@redis/client"
import { Cause, Clock, Duration, Effect, Layer, Redacted } from "effect"

export interface KeyOptions {
  /** In front of every key. Default `eventbus:idempotency:`. Programs that consume different Kafka clusters and share a Redis need different ones. */
  readonly prefix?: string
}

export interface Options extends KeyOptions {
  /** Default `127.0.0.1`. */
  readonly host?: string
  /** Default 6379. */
  readonly port?: number
  /** Default off. On: with the certificates that Node trusts. */
  readonly tls?: boolean
  /** Number of the database. Default 0. */
  readonly database?: number
  readonly username?: string
  readonly password?: Redacted.Redacted
  /** How long opening the layer waits for Redis. Default 10 seconds. Afterwards the client reconnects by itself, and calls fail at once until it has. */
  readonly connectTimeout?: Duration.Input
}

/** What the store needs of a client: a connected one of `@redis/client`, also for a cluster, a pool or sentinels. */
export interface Scripting {
  readonly eval: (
    script: string,
    options: { readonly keys: Array<string>; readonly arguments: Array<string> }
  ) => Promise<unknown>
}

/** The store on a client of the caller's. One that queues while it is offline answers late; `disableOfflineQueue` makes it fail at once. */
export const make = (client: Scripting, options: KeyOptions = {}): IdempotencyStore.IdempotencyStore["Service"] => {
  const prefix = options.prefix ?? "eventbus:idempotency:"
  const run = (
    operation: IdempotencyStore.IdempotencyStoreError["operation"],
    script: string,
    key: string,
    ...values: ReadonlyArray<string>
  ) =>
    Effect.tryPromise({
      try: () => client.eval(script, { keys: [prefix + key], arguments: [...values] }),
      catch: failed(operation)
    })
  const held = (...call: Parameters<typeof run>) => Effect.map(run(...call), (reply) => reply === 1)

  return IdempotencyStore.IdempotencyStore.of({
    name: "redis",
    begin: Effect.fnUntraced(function* (key, { lease }) {
      const id = crypto.randomUUID()
      const reply = yield* run("begin", scripts.begin, key, id, millis(lease))
      if (reply === started) return { _tag: "Started", token: { key, id } }
      if (reply === done) return { _tag: "Done" }
      return { _tag: "InProgress", untilMillis: (yield* Clock.currentTimeMillis) + Number(reply) }
    }),
    complete: ({ key, id }, { retention }) => held("complete", scripts.complete, key, id, millis(retention)),
    abandon: ({ key, id }) => held("abandon", scripts.abandon, key, id),
    renew: ({ key, id }, { lease }) => held("renew", scripts.renew, key, id, millis(lease))
  })
}

/** The store on a connection of its own, closed with the layer. */
export const layer = (
  options: Options = {}
): Layer.Layer<IdempotencyStore.IdempotencyStore, IdempotencyStore.IdempotencyStoreError> =>
  Layer.effect(
    IdempotencyStore.IdempotencyStore,
    Effect.map(connect(options), (client) => make(client, options))
  )

const connect = Effect.fnUntraced(function* (options: Options) {
  const patience = Duration.fromInputUnsafe(options.connectTimeout ?? "10 seconds")
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => createClient(clientOptions(options, patience))),
    (client) => Effect.sync(() => client.destroy())
  )
  // Without a listener Node throws what every call of the store reports anyway.
  client.on("error", () => {})
  yield* Effect.tryPromise({ try: () => client.connect(), catch: failed("open") }).pipe(
    Effect.timeoutOrElse({
      duration: patience,
      orElse: () =>
        Effect.fail(failed("open")(new Cause.TimeoutError(`no connection within ${Duration.format(patience)}`)))
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
    // A claim that is made only after a reconnection, when nobody waits for it any more, would block its key.
    disableOfflineQueue: true
  }) satisfies RedisClientOptions

/** Replies of `begin`; any other number is how many milliseconds somebody else's claim still lasts. */
const started = -1
const done = -2

/** KEYS[1] is the key, ARGV[1] the token, ARGV[2] milliseconds. */
const scripts = {
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

/** Redis counts in whole milliseconds, from 1. */
const millis = (duration: Duration.Duration): string => String(Math.max(1, Math.ceil(Duration.toMillis(duration))))

const failed = (operation: IdempotencyStore.IdempotencyStoreError["operation"]) => (cause: unknown) =>
  new IdempotencyStore.IdempotencyStoreError({ store: "redis", operation, retryable: true, cause })
