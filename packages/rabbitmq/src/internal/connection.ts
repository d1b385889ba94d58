/**
 * A connection that is opened again whenever it is lost, for as long as its scope is open.
 *
 * amqplib has a recovery of its own. It is not used: its channels end with their connection all the same, its waits are no Effects, and a login that is refused would be tried
 * without telling anybody.
 */
import * as LogLine from "@eventbus/core/LogLine"
import { type ChannelModel, connect, credentials, type SocketOptions } from "amqplib"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { RabbitMqError } from "../RabbitMqError.ts"
import { backoff } from "./backoff.ts"
import * as Failures from "./failures.ts"
import { keepRunning } from "./keepRunning.ts"
import type { Settings } from "./settings.ts"
import { socketOf } from "./socket.ts"

/** How long closing waits for RabbitMQ's answer. */
const closeMillis = 2_000

/** A connection that comes back. */
export interface Connection {
  /** Waits until there is a connection. */
  readonly model: Effect.Effect<ChannelModel>
  /** Fails when the first connection could not be opened, because the login was refused, or until the time for it was over. */
  readonly first: Effect.Effect<void, RabbitMqError>
  /** The connection as it is now. */
  readonly state: ConnectionState
}

/** The state of a connection. Only this file writes it. */
export interface ConnectionState {
  /** The open connection. Undefined while there is none. */
  model: ChannelModel | undefined
  /** The address of the last connection, `host:port`. Before the first one: all addresses. */
  address: string
  /** Why RabbitMQ takes no messages from this connection. Undefined while it does. */
  blocked: string | undefined
  /** Why there is no connection. Undefined while there is one. */
  failure: RabbitMqError | undefined
}

/** Opens the connection in the background. `purpose` names it in RabbitMQ's list of connections and in log lines. */
export const makeConnection = Effect.fnUntraced(function* (purpose: string, settings: Settings) {
  const state: ConnectionState = {
    model: undefined,
    address: settings.hosts.join(", "),
    blocked: undefined,
    failure: undefined
  }
  const first = yield* Deferred.make<void, RabbitMqError>()
  let next = Deferred.makeUnsafe<ChannelModel>()
  yield* Effect.addFinalizer(() => closeModel(state.model))

  const opened = Effect.sync(() => {
    state.failure = undefined
    Deferred.doneUnsafe(first, Effect.void)
    if (state.model !== undefined) Deferred.doneUnsafe(next, Effect.succeed(state.model))
  })
  const keepOpen = Effect.gen(function* () {
    let failures = 0
    for (let start = 0; ; start = (start + 1) % settings.hosts.length) {
      const addresses = [...settings.hosts.slice(start), ...settings.hosts.slice(0, start)]
      const opening = openAny(purpose, settings, state, addresses)
      const failed = yield* Effect.flip(Effect.flatMap(Effect.tap(opening, opened), (lost) => lost))
      failures = Deferred.isDoneUnsafe(next) ? 1 : failures + 1
      next = Deferred.isDoneUnsafe(next) ? Deferred.makeUnsafe<ChannelModel>() : next
      state.failure = failed
      if (!failed.retryable) yield* Deferred.fail(first, failed)
      yield* LogLine.warning(`${purpose}: ${failed.message} It is tried again.`)
      yield* backoff(failures)
    }
  })
  // A connection that a former loop left open is closed first.
  const closing = Effect.suspend(() => closeModel(state.model)).pipe(
    Effect.andThen(
      Effect.sync(() => {
        state.model = undefined
      })
    )
  )
  yield* Effect.forkScoped(keepRunning(purpose, Effect.andThen(closing, keepOpen)))

  const timeout = Effect.suspend(() =>
    Effect.fail(state.failure ?? Failures.ofConnect("no answer in time", state.address))
  )
  const connection: Connection = {
    state,
    model: Effect.suspend(() => Deferred.await(next)),
    first: Effect.timeoutOrElse(Deferred.await(first), {
      duration: settings.connectTimeoutMillis,
      orElse: () => timeout
    })
  }
  return connection
})

/** Fails when the open connection is closed. */
type Lost = Effect.Effect<never, RabbitMqError>

/** An address that has not answered after this time has the next one tried beside it (ruling 82). */
const silenceMillis = 1_000

/** Opens a connection to the first address that answers. Fails when all failed, by a failure that no waiting cures where there is one. */
const openAny = (
  purpose: string,
  settings: Settings,
  state: ConnectionState,
  addresses: ReadonlyArray<string>
): Effect.Effect<Lost, RabbitMqError> =>
  Effect.suspend(() => {
    const failures: Array<RabbitMqError> = []
    const ended = addresses.map(() => Deferred.makeUnsafe<void>())
    const attempts = addresses.map((address, index) => {
      const before = ended[index - 1]
      const isItsTurn =
        before === undefined
          ? Effect.void
          : Effect.raceFirst(Effect.sleep(index * silenceMillis), Deferred.await(before))
      return Effect.andThen(isItsTurn, open(purpose, settings, state, address)).pipe(
        Effect.tapError((failure) =>
          Effect.sync(() => {
            failures.push(failure)
            Deferred.doneUnsafe(ended[index]!, Effect.void)
          })
        )
      )
    })
    return Effect.mapError(Effect.raceAll(attempts), (last) => failures.find(({ retryable }) => !retryable) ?? last)
  })

/** Opens a connection. After an interruption the scope's finalizer closes what is in `state`; one that is open later is closed at once. */
const open = (
  purpose: string,
  settings: Settings,
  state: ConnectionState,
  address: string
): Effect.Effect<Lost, RabbitMqError> =>
  Effect.callback((resume) => {
    let isAbandoned = false
    connect(addressOf(settings, address), socketOptions(purpose, settings)).then(
      (model) => {
        // The reason comes with `close`; without a listener Node.js would throw it.
        model.on("error", () => {})
        if (isAbandoned || state.model !== undefined) Effect.runFork(closeModel(model))
        else resume(Effect.succeed(follow(model, state, address)))
      },
      (error) => resume(Effect.fail(Failures.ofConnect(error, address)))
    )
    return Effect.sync(() => {
      isAbandoned = true
    })
  })

/** Keeps the state of an open connection. */
const follow = (model: ChannelModel, state: ConnectionState, address: string): Lost => {
  const lost = Deferred.makeUnsafe<never, RabbitMqError>()
  state.model = model
  state.address = address
  model.on("blocked", (reason) => {
    state.blocked = reason
  })
  model.on("unblocked", () => {
    state.blocked = undefined
  })
  model.once("close", (error?: Error) => {
    if (state.model === model) state.model = undefined
    state.blocked = undefined
    Deferred.doneUnsafe(lost, Effect.fail(Failures.ofLoss(error, address)))
  })
  return Deferred.await(lost)
}

/** Closes a connection in order, or else at its socket: an open socket would keep the process alive. */
const closeModel = (model: ChannelModel | undefined): Effect.Effect<void> => {
  if (model === undefined) return Effect.void
  return Effect.promise(() => model.close().catch(() => {})).pipe(
    Effect.timeoutOrElse({ duration: closeMillis, orElse: () => Effect.void }),
    Effect.andThen(Effect.sync(() => socketOf(model)?.destroy()))
  )
}

const addressOf = (settings: Settings, address: string) => {
  const at = address.lastIndexOf(":")
  return {
    protocol: settings.tls === false ? "amqp" : "amqps",
    hostname: address.slice(0, at).replace(/^\[|\]$/g, ""),
    port: Number(address.slice(at + 1)),
    vhost: encodeURIComponent(settings.vhost),
    heartbeat: settings.heartbeatSeconds
  }
}

const socketOptions = (purpose: string, settings: Settings): SocketOptions => {
  const { ca, cert, key, passphrase, servername, rejectUnauthorized } =
    typeof settings.tls === "object" ? settings.tls : {}
  return {
    // The client waits for answers: Nagle's algorithm would only delay them.
    noDelay: true,
    timeout: settings.connectTimeoutMillis,
    clientProperties: { connection_name: `${settings.connectionName} (${purpose})` },
    credentials: credentials.plain(settings.username, Redacted.value(settings.password)),
    ...(ca !== undefined && { ca: [ca].flat().map(plain) }),
    ...(cert !== undefined && { cert: plain(cert) }),
    ...(key !== undefined && { key: Redacted.value(key) }),
    ...(passphrase !== undefined && { passphrase: Redacted.value(passphrase) }),
    ...(servername !== undefined && { servername }),
    ...(rejectUnauthorized !== undefined && { rejectUnauthorized })
  }
}

const plain = (text: string | Redacted.Redacted): string => (Redacted.isRedacted(text) ? Redacted.value(text) : text)
