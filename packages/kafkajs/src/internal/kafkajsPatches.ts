/** Repairs of kafkajs 2.2.4 that every connection needs. They change its prototypes, once per process, when the first cluster is opened. */
import type { Mechanism } from "kafkajs"
import {
  apiKeys,
  connection,
  Encoder,
  type KafkaBroker,
  type KafkaConnection,
  requestQueue,
  saslAuthenticator
} from "./kafkajsInternals.ts"

/**
 * kafkajs re-arms a timer of at most 1 ms on every connection for ever, even when there is nothing to send. An idle process spends 4 % of a core
 * on it, and Node 24 prints a TimeoutNegativeWarning. The timer is needed only while requests wait for a throttle to end.
 */
const stopIdleTimer = (): void => {
  requestQueue.prototype.scheduleCheckPendingRequests = function () {
    if (this.throttleCheckTimeoutId !== null || this.pending.length === 0) return
    this.throttleCheckTimeoutId = setTimeout(
      () => {
        this.throttleCheckTimeoutId = null
        this.checkPendingRequests()
      },
      Math.max(10, this.throttledUntil - Date.now())
    )
  }
}

const rejectUnanswered = (self: KafkaConnection): void => {
  if (self.requestQueue.inflight.size === 0) return
  const closed = Object.assign(new Error("Closed connection"), { name: "KafkaJSConnectionClosedError" })
  self.requestQueue.rejectAll(closed)
}

/**
 * kafkajs forgets a request that is sent while its connection waits to be closed. Its caller would wait for ever, and so would the next caller
 * that closes the connection.
 */
const rejectWhenClosed = (): void => {
  const disconnect = connection.prototype.disconnect
  connection.prototype.disconnect = async function () {
    const closed = await disconnect.call(this)
    rejectUnanswered(this)
    return closed
  }
}

/** A half-read answer and late events of the last socket must not reach the next one. */
const forgetLastSocket = (self: KafkaConnection): void => {
  rejectUnanswered(self)
  self.chunks = []
  self.bytesBuffered = 0
  self.bytesNeeded = 4
  if (self.socket === undefined) return
  for (const event of ["data", "end", "error", "timeout"]) self.socket.removeAllListeners(event)
  self.socket.on("error", () => {})
  self.socket.destroy()
}

/** Closes both connections to a node, whatever they wait for. */
export const closeAtOnce = ({ connectionPool }: KafkaBroker): void => {
  for (const one of connectionPool.pool) {
    rejectUnanswered(one)
    one.socket?.destroy(new Error("closed"))
    one.disconnect().catch(() => undefined)
  }
}

/**
 * When several requests find a connection closed, kafkajs opens a socket for each, keeps the last one and leaves the others open. It also
 * continues a half-read answer of the old socket with the bytes of the new one, and it cannot wait for the secrets that a socket needs.
 */
const connectOnce = (): void => {
  const connect = connection.prototype.connect
  const connecting = new WeakMap<KafkaConnection, Promise<unknown>>()
  connection.prototype.connect = function () {
    const pending = connecting.get(this)
    if (pending !== undefined) return pending
    if (!this.isConnected()) forgetLastSocket(this)
    this.requestQueue.handshakeTimeoutMillis = this.connectionTimeout
    // Other users of kafkajs in this process have socket factories without `prepare`.
    const attempt = Promise.resolve(this.socketFactory.prepare?.())
      .then(() => connect.call(this))
      .finally(() => connecting.delete(this))
    connecting.set(this, attempt)
    return attempt
  }
}

/** The requests that make a connection ready for others. */
const handshakeKeys = new Set([apiKeys.ApiVersions, apiKeys.SaslHandshake, apiKeys.SaslAuthenticate])

/**
 * kafkajs waits for the answers that make a connection ready as long as for any other answer. A node that accepts a connection and is silent is
 * unavailable (ruling 82), so each of them may take only as long as connecting may.
 */
const boundHandshake = (): void => {
  const createSocketRequest = requestQueue.prototype.createSocketRequest
  requestQueue.prototype.createSocketRequest = function (pushed) {
    const request = createSocketRequest.call(this, pushed)
    const { apiKey, correlationId } = pushed.entry
    this.lastCorrelationId = correlationId
    if (handshakeKeys.has(apiKey)) {
      request.requestTimeout = Math.min(request.requestTimeout, this.handshakeTimeoutMillis ?? request.requestTimeout)
    }
    return request
  }
}

/** The longest answer that is read. A longer one is no answer of Kafka: the first bytes of HTTP are a length of more than a gigabyte. */
const maxAnswerBytes = 256 * 1024 * 1024

/**
 * An answer whose length cannot be true ends the process in kafkajs, or fills its memory; it only logs an answer to a request that was never sent. Both
 * mean that the bytes are not understood, so the connection ends, and its requests fail.
 */
const refuseFalseAnswers = (): void => {
  const fulfillRequest = requestQueue.prototype.fulfillRequest
  requestQueue.prototype.fulfillRequest = function (answer) {
    const { correlationId } = answer
    // An earlier id is that of a request that has timed out: its answer is dropped.
    const isFalse = correlationId < 0 || correlationId > (this.lastCorrelationId ?? correlationId)
    if (isFalse && !this.inflight.has(correlationId)) {
      throw new Error(`the listener answered request ${correlationId}, which was not sent`)
    }
    fulfillRequest.call(this, answer)
  }
  const processData = connection.prototype.processData
  connection.prototype.processData = function (bytes) {
    try {
      processData.call(this, bytes)
      if (this.bytesNeeded > maxAnswerBytes) throw new Error(`the listener announced ${this.bytesNeeded} bytes`)
    } catch (error) {
      const { message } = error as Error
      this.socket?.destroy(Object.assign(new Error(`not an answer of Kafka (${message})`), { code: "EBADMSG" }))
    }
  }
}

/** The last part of a session's life in which it authenticates again. The Java client does so between 85 and 95 % of the life. */
const reauthenticationWindow = 0.15

/** A broker refuses an authentication within a second of the last one. */
const shortestMillis = 1_100

/**
 * kafkajs authenticates again in the last 10 seconds of a session that the broker limits. It would renew a session of 10 seconds or less before every
 * request, which the broker refuses; and for a long session 10 seconds may be too short to fetch a token.
 */
const reauthenticateInTime = (): void => {
  Object.defineProperty(connection.prototype, "reauthenticationThreshold", {
    configurable: true,
    get(this: KafkaConnection) {
      const life = this.sessionLifetime.toNumber()
      return Math.ceil(Math.min(life * reauthenticationWindow, life - shortestMillis))
    },
    set: () => {}
  })
}

/** A SASL mechanism for kafkajs. `prepare` reads the credentials before each authentication. */
export const preparedSasl = (
  mechanism: string,
  prepare: () => Promise<Mechanism["authenticationProvider"]>
): Mechanism => {
  const authenticationProvider = () => ({ authenticate: () => Promise.reject(new Error("not prepared")) })
  return Object.assign({ mechanism, authenticationProvider }, { prepare })
}

/**
 * kafkajs asks for credentials in the middle of the SASL exchange. If they are not available then, the broker waits for them for ever and takes no
 * other request.
 */
const readCredentialsFirst = (): void => {
  const authenticate = saslAuthenticator.prototype.authenticate
  saslAuthenticator.prototype.authenticate = async function () {
    const { sasl } = this.connection
    if (sasl.prepare !== undefined) {
      this.connection.sasl = { ...sasl, authenticationProvider: await sasl.prepare() }
    }
    return authenticate.call(this)
  }
}

/**
 * kafkajs copies a whole request twice, into zeroed buffers of up to twice its size, to put its length and header before the body. A body with
 * room before it (`whole`) stays where it is.
 */
const writeHeaderInPlace = (): void => {
  const writeEncoder = Encoder.prototype.writeEncoder
  Encoder.prototype.writeEncoder = function (value) {
    const { whole, buffer } = value
    const begin = whole === undefined ? -1 : whole.length - buffer.length - this.offset
    if (whole === undefined || begin < 0) return writeEncoder.call(this, value)
    this.buf.copy(whole, begin, 0, this.offset)
    this.whole = whole
    this.buf = whole.subarray(begin)
    this.offset = this.buf.length
    return this
  }
}

let applied = false

/** Applies the repairs; does nothing from the second call on. */
export const patchKafkajs = (): void => {
  if (applied) return
  applied = true
  stopIdleTimer()
  connectOnce()
  rejectWhenClosed()
  boundHandshake()
  refuseFalseAnswers()
  reauthenticateInTime()
  readCredentialsFirst()
  writeHeaderInPlace()
}
