/** Repairs of kafkajs 2.2.4 that every connection needs. Applied once per process, when the first cluster is opened. */
import type { Mechanism } from "kafkajs"
import { connection, Encoder, type KafkaConnection, requestQueue, saslAuthenticator } from "./kafkajsInternals.ts"

/**
 * kafkajs re-arms a timer of at most 1 ms on every connection for ever, also when there is nothing to send: 4 % of a core for an
 * idle process, and a TimeoutNegativeWarning on Node 24. The timer is only needed while requests wait for a throttle to end.
 */
const restBetweenRequests = (): void => {
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
 * A request that is sent while its connection waits to be closed gets no answer, and kafkajs forgets about it: whoever waits for it
 * waits for ever, and so does the next one who closes the connection.
 */
const rejectWhenClosed = (): void => {
  const disconnect = connection.prototype.disconnect
  connection.prototype.disconnect = async function () {
    const closed = await disconnect.call(this)
    rejectUnanswered(this)
    return closed
  }
}

/** The last socket's half-read answer and late events must not reach the next one. */
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

/**
 * kafkajs opens one socket for each of several requests that find a connection closed, keeps the last of them and leaves the others
 * open; and it goes on reading a new socket where the old one had stopped, in the middle of an answer. Nor can it wait for the secrets that a socket needs.
 */
const connectOnceAndAfresh = (): void => {
  const connect = connection.prototype.connect
  const connecting = new WeakMap<KafkaConnection, Promise<unknown>>()
  connection.prototype.connect = function () {
    const pending = connecting.get(this)
    if (pending !== undefined) return pending
    if (!this.isConnected()) forgetLastSocket(this)
    // other users of kafkajs in this process have socket factories of their own
    const attempt = Promise.resolve(this.socketFactory.prepare?.())
      .then(() => connect.call(this))
      .finally(() => connecting.delete(this))
    connecting.set(this, attempt)
    return attempt
  }
}

/** The last part of a session in which it is renewed; the Java client does so between 85 and 95 % of its life. */
const renewal = 0.15

/** A broker takes no authentication within a second of the last. */
const shortestMillis = 1_100

/**
 * kafkajs authenticates anew in the last 10 seconds of a session that the broker limits. One that is not longer is renewed before every request, which the
 * broker refuses; of a long one 10 seconds may be too little for a token to be got.
 */
const renewInTime = (): void => {
  Object.defineProperty(connection.prototype, "reauthenticationThreshold", {
    configurable: true,
    get(this: KafkaConnection) {
      const life = this.sessionLifetime.toNumber()
      return Math.ceil(Math.min(life * renewal, life - shortestMillis))
    },
    set: () => {}
  })
}

/** SASL for kafkajs with credentials that `prepare` reads before each authentication. */
export const preparedSasl = (
  mechanism: string,
  prepare: () => Promise<Mechanism["authenticationProvider"]>
): Mechanism => {
  const authenticationProvider = () => ({ authenticate: () => Promise.reject(new Error("not prepared")) })
  return Object.assign({ mechanism, authenticationProvider }, { prepare })
}

/**
 * kafkajs asks for credentials in the middle of the exchange. When they cannot be had then, the broker waits for them for ever, and takes nothing else.
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
 * kafkajs copies a whole request twice, into zeroed buffers of up to twice its size, to put its header and its length in front of it. A body that leaves room
 * for them (`whole`) stays where it is.
 */
const writeInFront = (): void => {
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

export const patchKafkajs = (): void => {
  if (applied) return
  applied = true
  restBetweenRequests()
  connectOnceAndAfresh()
  rejectWhenClosed()
  renewInTime()
  readCredentialsFirst()
  writeInFront()
}
