/** Repairs of kafkajs 2.2.4 that every connection needs. Applied once per process, when the first cluster is opened. */
import { connection, type KafkaConnection, requestQueue } from "./kafkajsInternals.ts"

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

/** The last socket's half-read answer and late events must not reach the next one. */
const forgetLastSocket = (self: KafkaConnection): void => {
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
 * open; and it goes on reading a new socket where the old one had stopped, in the middle of an answer.
 */
const connectOnceAndAfresh = (): void => {
  const connect = connection.prototype.connect
  const connecting = new WeakMap<KafkaConnection, Promise<unknown>>()
  connection.prototype.connect = function () {
    const pending = connecting.get(this)
    if (pending !== undefined) return pending
    if (!this.isConnected()) forgetLastSocket(this)
    const attempt = connect.call(this).finally(() => connecting.delete(this))
    connecting.set(this, attempt)
    return attempt
  }
}

let applied = false

export const patchKafkajs = (): void => {
  if (applied) return
  applied = true
  restBetweenRequests()
  connectOnceAndAfresh()
}
