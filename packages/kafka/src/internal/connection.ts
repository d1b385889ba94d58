/**
 * One socket to a node, from its first byte to its last. Requests that wait for answers when it ends fail with the reason. A node that does not answer a
 * request in time loses the connection, as with Kafka's Java client, so that the next request goes to a new one.
 */
import type { Socket } from "node:net"
import { ClientFailure, Handshake, type Sockets, type Transport } from "@eventbus/kafka-client"
import { Frames } from "./frames.ts"
import { requestBytes } from "./requestBytes.ts"
import { longestDelayMillis } from "./timers.ts"

const { failure, Local } = ClientFailure

interface Waiting {
  readonly request: Transport.Request<unknown>
  readonly resolve: (answer: unknown) => void
  readonly reject: (failed: ClientFailure.ClientFailure) => void
  /** By `performance.now()`. */
  readonly sentAt: number
  readonly deadline: number
}

export class Connection {
  readonly #socket: Socket
  readonly #clientId: Buffer
  readonly #frames = new Frames((correlationId, answer) => this.#answered(correlationId, answer))
  readonly #waiting = new Map<number, Waiting>()
  #nextCorrelationId = 0
  /** Why the connection has ended. */
  #ended: ClientFailure.ClientFailure | undefined
  /** The error that a socket reports before it closes. */
  #socketError: Error | undefined
  /** Requests that wait until nothing holds them back. */
  readonly #heldBack: Array<() => void> = []
  #holds = 0
  /** When the broker ends the session, by `performance.now()`. */
  #sessionEndsAt = Number.POSITIVE_INFINITY
  /** The latest deadline of the requests that wait for answers. */
  #lastDeadline = Number.NEGATIVE_INFINITY
  #throttledUntil = 0
  #throttleTimer: NodeJS.Timeout | undefined
  #timer: NodeJS.Timeout | undefined
  #timerAt = Number.POSITIVE_INFINITY
  #onIdle: Array<() => void> = []
  #onEnd: Array<() => void> = []

  /** `open` returns a socket that is not yet connected. */
  constructor(open: (reader: Sockets.Reader) => Socket, clientId: Buffer) {
    const socket = open({ room: () => this.#frames.room(), take: (bytes) => this.#read(bytes) })
    this.#socket = socket
    this.#clientId = clientId
    socket.on("error", (error) => {
      this.#socketError ??= error
    })
    socket.on("close", () => {
      const error = this.#socketError
      const bySocket = error === undefined ? undefined : ClientFailure.ofSocketError(error)
      const detail = error?.message ?? "Connection closed by the server"
      this.end(bySocket ?? failure(Local.connection, detail))
    })
  }

  get isOpen(): boolean {
    return this.#ended === undefined
  }

  /** Why the connection has ended. */
  get why(): ClientFailure.ClientFailure {
    return this.#ended ?? failure(Local.connection, "the connection has not ended")
  }

  /** Whether a request waits for its answer. */
  get isBusy(): boolean {
    return this.#waiting.size > 0
  }

  /** Sends a request as soon as nothing holds it back. `timeoutMillis`: the longest time for its answer. */
  send<A>(request: Transport.Request<A>, timeoutMillis: number): Promise<A> {
    return new Promise<A>((resolve, reject) => {
      this.#heldBack.push(() => this.#write(request, timeoutMillis, resolve as (answer: unknown) => void, reject))
      this.#writeHeldBack()
    })
  }

  /** As `send`, also while other requests are held back. */
  sendAtOnce<A>(request: Transport.Request<A>, timeoutMillis: number): Promise<A> {
    return new Promise<A>((resolve, reject) => {
      this.#write(request, timeoutMillis, resolve as (answer: unknown) => void, reject)
    })
  }

  /** Holds back requests that are sent from now on, until `release`. */
  hold(): void {
    this.#holds++
  }

  release(): void {
    this.#holds--
    this.#writeHeldBack()
  }

  /** The broker closes the connection when it comes to a request after this time, by `performance.now()`. */
  endSessionAt(time: number): void {
    this.#sessionEndsAt = time
  }

  /** Resolves when no request waits for its answer. */
  idle(): Promise<void> {
    return this.isBusy ? new Promise((resolve) => this.#onIdle.push(resolve)) : Promise.resolve()
  }

  /** Ends the connection when the answers that are due have come. */
  async endWhenIdle(): Promise<void> {
    this.hold()
    await this.idle()
    this.end(failure(Local.connection, "the client closed the connection"))
  }

  /** Calls back once, when the connection has ended. */
  onEnd(callback: () => void): void {
    if (this.isOpen) this.#onEnd.push(callback)
    else callback()
  }

  /** Ends the connection at once. Every request without an answer fails by `why`. */
  end(why: ClientFailure.ClientFailure): void {
    if (this.#ended !== undefined) return
    this.#ended = why
    clearTimeout(this.#timer)
    clearTimeout(this.#throttleTimer)
    this.#socket.destroy()
    for (const { reject } of this.#waiting.values()) reject(why)
    this.#waiting.clear()
    this.#writeHeldBack()
    for (const callback of [...this.#onIdle.splice(0), ...this.#onEnd.splice(0)]) callback()
  }

  /**
   * A node takes up one request of a connection at a time. A request that waits there behind others is taken up at the last of their deadlines at the latest,
   * so the session must last until then.
   */
  get #mayWrite(): boolean {
    if (this.#holds > 0) return false
    return this.#sessionEndsAt > (this.isBusy ? this.#lastDeadline : performance.now())
  }

  #writeHeldBack(): void {
    while (this.#heldBack.length > 0 && (!this.isOpen || this.#mayWrite)) this.#heldBack.shift()!()
  }

  #write(
    request: Transport.Request<unknown>,
    timeoutMillis: number,
    resolve: Waiting["resolve"],
    reject: Waiting["reject"]
  ): void {
    if (this.#ended !== undefined) {
      reject(this.#ended)
      return
    }
    const correlationId = this.#nextCorrelationId
    this.#nextCorrelationId = (correlationId + 1) & 0x7fffffff
    try {
      this.#socket.write(requestBytes(request, correlationId, this.#clientId))
    } catch (error) {
      reject(ClientFailure.fromThrown(error))
      return
    }
    const sentAt = performance.now()
    const deadline = sentAt + timeoutMillis
    this.#lastDeadline = this.isBusy ? Math.max(this.#lastDeadline, deadline) : deadline
    this.#waiting.set(correlationId, { request, resolve, reject, sentAt, deadline })
    if (deadline < this.#timerAt) this.#wakeAt(deadline)
  }

  #read(bytes: number): void {
    if (this.#socket.destroyed) return
    try {
      this.#frames.take(bytes)
    } catch (error) {
      this.end(failure(Local.connection, `not an answer of Kafka (${(error as Error).message})`))
    }
  }

  #answered(correlationId: number, answer: Buffer): void {
    const waiting = this.#waiting.get(correlationId)
    if (waiting === undefined) {
      // An earlier id is that of a request that was answered already.
      if (correlationId >= 0 && correlationId < this.#nextCorrelationId) return
      throw new RangeError(`the listener answered request ${correlationId}, which was not sent`)
    }
    const { request, resolve, sentAt, deadline } = waiting
    const decoded = request.decode(request.isFlexible ? Handshake.behindTags(answer) : answer)
    this.#waiting.delete(correlationId)
    resolve(decoded.answer)
    if (decoded.throttleMillis > 0) this.#throttle(Math.min(decoded.throttleMillis, deadline - sentAt))
    if (this.#waiting.size === 0) for (const callback of this.#onIdle.splice(0)) callback()
    this.#writeHeldBack()
  }

  /** A node cannot hold requests back for longer than it may take for an answer. */
  #throttle(millis: number): void {
    const until = performance.now() + millis
    if (until <= this.#throttledUntil) return
    if (this.#throttledUntil === 0) this.hold()
    this.#throttledUntil = until
    clearTimeout(this.#throttleTimer)
    this.#throttleTimer = setTimeout(() => {
      this.#throttledUntil = 0
      this.release()
    }, millis)
  }

  /** One timer for all requests: it wakes at the earliest deadline that was known when it was set. */
  #wakeAt(deadline: number): void {
    clearTimeout(this.#timer)
    this.#timerAt = deadline
    const millis = Math.min(longestDelayMillis, Math.ceil(deadline - performance.now()))
    // After a pause of this process the answer may be there, unread: timers come before sockets, and an immediate comes after them.
    this.#timer = setTimeout(() => setImmediate(() => this.#checkDeadlines()), millis)
    this.#timer.unref()
  }

  #checkDeadlines(): void {
    this.#timerAt = Number.POSITIVE_INFINITY
    const now = performance.now()
    let earliest = Number.POSITIVE_INFINITY
    for (const [correlationId, { request, reject, sentAt, deadline }] of this.#waiting) {
      if (deadline > now) {
        earliest = Math.min(earliest, deadline)
        continue
      }
      this.#waiting.delete(correlationId)
      const waitedMillis = Math.round(now - sentAt)
      reject({ ...failure(Local.timeout, `no answer to ${request.apiName}`), waitedMillis })
      this.end(failure(Local.connection, `the node did not answer ${request.apiName} for ${waitedMillis} ms`))
      return
    }
    if (earliest < Number.POSITIVE_INFINITY) this.#wakeAt(earliest)
  }
}
