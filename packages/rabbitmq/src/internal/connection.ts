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
  /** The address of the last attempt, `host:port`. */
  address: string
  /** Why RabbitMQ takes no messages from this connection. Undefined while it does. */
  blocked: string | undefined
  /** Why there is no connection. Undefined while there is one. */
  failure: RabbitMqError | undefined
}

/** Opens the connection in the background. `purpose` names it in RabbitMQ's list of connections and in log lines. */
export const makeConnection = Effect.fnUntraced(function* (purpose: string, settings: Settings) {
  const state: ConnectionState = { model: undefined, address: "", blocked: undefined, failure: undefined }
  const first = yield* Deferred.make<void, RabbitMqError>()
  let next = Deferred.makeUnsafe<ChannelModel>()
  yield* Effect.addFinalizer(() => closeModel(state.model))

  const opened = (model: ChannelModel) => {
    state.model = model
    state.failure = undefined
    Deferred.doneUnsafe(first, Effect.void)
    Deferred.doneUnsafe(next, Effect.succeed(model))
  }
  const keepOpen = Effect.gen(function* () {
    let [attempts, failures] = [0, 0]
    while (true) {
      state.address = settings.hosts[attempts++ % settings.hosts.length]!
      const failed = yield* Effect.flip(lifeOf(purpose, settings, state, opened))
      failures = Deferred.isDoneUnsafe(next) ? 1 : failures + 1
      next = Deferred.isDoneUnsafe(next) ? Deferred.makeUnsafe<ChannelModel>() : next
      state.failure = failed
      if (!failed.retryable) yield* Deferred.fail(first, failed)
      yield* LogLine.warning(`${purpose}: ${failed.message} It is tried again.`)
      yield* backoff(failures)
    }
  })
  // A connection that a former loop left open is closed first.
  const closing = Effect.suspend(() => closeModel(state.model))
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

/** Opens a connection, and fails when it could not be opened, or is closed. After an interruption the scope's finalizer closes what is in `state`. */
const lifeOf = (
  purpose: string,
  settings: Settings,
  state: ConnectionState,
  onOpen: (model: ChannelModel) => void
): Effect.Effect<never, RabbitMqError> =>
  Effect.callback((resume) => {
    const { address } = state
    let abandoned = false
    const live = (model: ChannelModel): void => {
      // The reason comes with `close`; without a listener Node.js would throw it.
      model.on("error", () => {})
      if (abandoned) {
        Effect.runFork(closeModel(model))
        return
      }
      model.on("blocked", (reason) => {
        state.blocked = reason
      })
      model.on("unblocked", () => {
        state.blocked = undefined
      })
      model.once("close", (error?: Error) => {
        state.model = undefined
        state.blocked = undefined
        resume(Effect.fail(Failures.ofLoss(error, address)))
      })
      onOpen(model)
    }
    connect(addressOf(settings, address), socketOptions(purpose, settings)).then(live, (error) =>
      resume(Effect.fail(Failures.ofConnect(error, address)))
    )
    return Effect.sync(() => {
      abandoned = true
    })
  })

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
