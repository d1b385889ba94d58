/** SASL on one connection: the exchange when it opens, and again before the broker ends the session (KIP-368). */
import { ClientFailure, Handshake, type SaslMechanism, type Transport } from "@eventbus/kafka-client"
import type { Connection } from "./connection.ts"
import { longestDelayMillis } from "./timers.ts"

const { failure, Local } = ClientFailure

/** The part of a session's life after which it authenticates again: at random between the two, as Kafka's Java client does. */
const renewal = { from: 0.85, to: 0.95 }

/** A broker refuses an authentication within a second of the last one. */
const shortestMillis = 1_100

/** The pause before credentials that were not there are read again. */
const againMillis = 1_000

const refused = (detail: string): ClientFailure.ClientFailure => failure(Local.authentication, detail)

const illegalState = 34
const unsupportedMechanism = 33

const agree = async (connection: Connection, mechanism: string, timeoutMillis: number): Promise<void> => {
  const { errorCode, mechanisms } = await connection.sendAtOnce(Handshake.saslHandshake(mechanism), timeoutMillis)
  if (errorCode === illegalState) throw refused("the listener wants no authentication")
  if (errorCode === unsupportedMechanism) {
    const taken = mechanisms.length === 0 ? "no other one" : mechanisms.join(", ")
    throw refused(`SASL ${mechanism} is not supported by the server, which takes ${taken}`)
  }
  if (errorCode !== 0) throw refused(`the broker answered error ${errorCode} to the SASL handshake`)
}

/** A session that a broker has granted. */
interface Session {
  /** 0 when the broker does not limit it. */
  readonly lifeMillis: number
  /** By `performance.now()`, and rather too early: the broker counts from some time between the last message and its answer. */
  readonly endsAt: number
}

const exchange = async (
  connection: Connection,
  { start, next }: SaslMechanism.SaslMechanism,
  timeoutMillis: number
): Promise<Session> => {
  for (let message = start(); ; ) {
    const sentAt = performance.now()
    const answer = await connection.sendAtOnce(Handshake.saslAuthenticate(message), timeoutMillis)
    if (answer.errorCode !== 0) {
      throw refused(answer.errorMessage ?? `the broker answered error ${answer.errorCode} to the authentication`)
    }
    const reply = next(answer.message)
    if (reply !== undefined) {
      message = reply
      continue
    }
    const lifeMillis = Math.max(0, answer.sessionLifetimeMillis)
    return { lifeMillis, endsAt: lifeMillis > 0 ? sentAt + lifeMillis : Number.POSITIVE_INFINITY }
  }
}

const authenticateWith = async (
  connection: Connection,
  mechanism: string,
  credentials: SaslMechanism.SaslMechanism,
  timeoutMillis: number
): Promise<Session> => {
  await agree(connection, mechanism, timeoutMillis)
  try {
    return await exchange(connection, credentials, timeoutMillis)
  } catch (thrown) {
    const failed = ClientFailure.fromThrown(thrown)
    const isRefusal = failed.type === Local.authentication || failed.type === Local.client
    if (isRefusal) credentials.refused?.()
    throw failed.type === Local.client ? refused(failed.detail) : failed
  }
}

/** Authenticates, and from then on again before each session ends. The credentials are read first: a broker does not wait for them in an exchange. */
export const authenticate = async (
  connection: Connection,
  sasl: Transport.Sasl,
  timeoutMillis: number
): Promise<void> => {
  const credentials = await sasl.prepare()
  const session = await authenticateWith(connection, sasl.mechanism, credentials, timeoutMillis)
  if (session.lifeMillis > 0) renewEachSession(connection, sasl, timeoutMillis, session)
}

/** `first`: the session that has just begun. */
const renewEachSession = (
  connection: Connection,
  sasl: Transport.Sasl,
  timeoutMillis: number,
  first: Session
): void => {
  let timer: NodeJS.Timeout | undefined
  let endsAt = 0
  const schedule = (millis: number): void => {
    if (!connection.isOpen) return
    timer = setTimeout(() => void renew(), Math.min(longestDelayMillis, millis))
    timer.unref()
  }
  const begun = (session: Session): void => {
    endsAt = session.endsAt
    connection.endSessionAt(endsAt)
    if (session.lifeMillis === 0) return
    const part = renewal.from + Math.random() * (renewal.to - renewal.from)
    schedule(Math.max(shortestMillis, session.lifeMillis * part))
  }
  const renew = async (): Promise<void> => {
    try {
      const credentials = await sasl.prepare()
      await undisturbed(connection, async () =>
        begun(await authenticateWith(connection, sasl.mechanism, credentials, timeoutMillis))
      )
    } catch (thrown) {
      const failed = ClientFailure.fromThrown(thrown)
      const mayWait = failed.type === Local.credentials && performance.now() + againMillis < endsAt
      if (mayWait) schedule(againMillis)
      else connection.end(failed)
    }
  }
  connection.onEnd(() => clearTimeout(timer))
  begun(first)
}

/**
 * Runs an exchange with no other request on its way: those before it are answered first, and those behind it wait. No request fails for it. When the
 * exchange fails, the connection ends with what waits, so that nothing is sent without authentication.
 */
const undisturbed = async <A>(connection: Connection, run: () => Promise<A>): Promise<A> => {
  connection.hold()
  try {
    await connection.idle()
    return await run()
  } catch (thrown) {
    connection.end(ClientFailure.fromThrown(thrown))
    throw thrown
  } finally {
    connection.release()
  }
}
