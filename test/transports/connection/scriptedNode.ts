/** A node on a free port that does with each request what its script says. */
import { createServer, type Socket } from "node:net"
import type { SaslMechanism, Transport } from "@eventbus/kafka-client"
import { Effect, type Scope } from "effect"
import { openTransport } from "../../../packages/kafka/src/internal/transport.ts"
import { Writer } from "../../../packages/kafka-client/src/internal/protocol/writer.ts"

export const apiKey = { fetch: 1, metadata: 3, saslHandshake: 17, apiVersions: 18, saslAuthenticate: 36 }

/** A request as the node got it. */
export interface Received {
  readonly apiKey: number
  readonly apiVersion: number
  readonly correlationId: number
  /** The number of the connection that it came on, from 1. */
  readonly connection: number
  /** By `performance.now()`. */
  readonly at: number
  /** Behind the client id. */
  readonly body: Buffer
  readonly socket: Socket
  /** Sends an answer with this body, by default the body of the request. */
  readonly answer: (body?: Buffer) => void
}

export interface ScriptedNode {
  readonly address: Transport.Address
  script: (request: Received) => void
  /** Runs for each new connection. */
  onConnection: (socket: Socket) => void
  readonly received: Array<Received>
  readonly connections: () => number
}

/** An answer with its length and correlation id. */
export const frame = (correlationId: number, body: Buffer): Buffer =>
  new Writer()
    .int32(body.length + 4)
    .int32(correlationId)
    .raw(body).body.bytes

/** The answer of ApiVersions v3, of a node that speaks Metadata 0 to 5. */
const apiVersionsBody = (() => {
  const writer = new Writer().int16(0)
  return writer
    .compactArray([5], (max) => writer.int16(apiKey.metadata).int16(0).int16(max).noTags())
    .int32(0)
    .noTags().body.bytes
})()

/** The behaviour of a node that has authenticated a client for `lifeMillis`. */
export const authenticated = (lifeMillis: number): Buffer =>
  new Writer().int16(0).nullableString(null).int32(0).int64(BigInt(lifeMillis)).body.bytes

export const refused = (errorCode: number, text: string): Buffer =>
  new Writer().int16(errorCode).nullableString(text).int32(0).int64(0n).body.bytes

/** The answer to a SASL handshake for a mechanism that is not one of those that the node takes. */
export const unsupportedMechanism = (taken: ReadonlyArray<string>): Buffer =>
  new Writer().int16(33).strings(taken).body.bytes

/** Answers the requests that make a connection ready, and every other one by its own body. `lifeMillis`: of a session. */
export const answering =
  (lifeMillis = 0) =>
  ({ answer, apiKey: key }: Received): void => {
    if (key === apiKey.apiVersions) answer(apiVersionsBody)
    else if (key === apiKey.saslHandshake) answer(new Writer().int16(0).int32(0).body.bytes)
    else if (key === apiKey.saslAuthenticate) answer(authenticated(lifeMillis))
    else answer()
  }

/** Answers the requests that make a connection ready, and does something else with every other one. */
export const ready =
  (script: ScriptedNode["script"], lifeMillis = 0) =>
  (request: Received): void =>
    request.apiKey < apiKey.saslHandshake ? script(request) : answering(lifeMillis)(request)

const read = (node: ScriptedNode, socket: Socket, connection: number): void => {
  let rest: Buffer = Buffer.alloc(0)
  socket.on("data", (bytes: Buffer) => {
    rest = Buffer.concat([rest, bytes])
    while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
      const bytes = rest.subarray(4, 4 + rest.readInt32BE(0))
      rest = rest.subarray(4 + bytes.length)
      const correlationId = bytes.readInt32BE(4)
      const body = bytes.subarray(10 + bytes.readInt16BE(8))
      const request: Received = {
        ...{ apiKey: bytes.readInt16BE(0), apiVersion: bytes.readInt16BE(2), correlationId, connection },
        ...{ at: performance.now(), body, socket },
        answer: (with_ = body) => void socket.write(frame(correlationId, with_))
      }
      node.received.push(request)
      node.script(request)
    }
  })
}

/** Ends with the Scope. */
export const makeNode = (script: ScriptedNode["script"]): Effect.Effect<ScriptedNode, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ node: ScriptedNode; close: () => void }>((resume) => {
        const open = new Set<Socket>()
        let count = 0
        const server = createServer((socket) => {
          open.add(socket)
          socket.on("close", () => open.delete(socket)).on("error", () => {})
          node.onConnection(socket)
          read(node, socket, ++count)
        })
        let node: ScriptedNode
        server.listen(0, "127.0.0.1", () => {
          const at = server.address()
          const port = typeof at === "object" && at !== null ? at.port : 0
          node = {
            ...{ address: { host: "127.0.0.1", port }, script, received: [] },
            ...{ onConnection: () => {}, connections: () => open.size }
          }
          const close = () => {
            server.close()
            for (const socket of open) socket.destroy()
          }
          resume(Effect.succeed({ node, close }))
        })
      }),
      ({ close }) => Effect.sync(close)
    ),
    ({ node }) => node
  )

/** A request whose answer is its own body. */
export const echo = (text: string, more: Partial<Transport.Request<string>> = {}): Transport.Request<string> => ({
  ...{ apiKey: apiKey.metadata, apiVersion: 1, apiName: "Echo", isFlexible: false },
  encode: () => new Writer().raw(Buffer.from(text)).body,
  decode: (bytes) => ({ answer: bytes.toString(), throttleMillis: 0 }),
  ...more
})

/** A client of the node, with its sockets closed at the end of the Scope. */
export const clientOf = Effect.fnUntraced(function* (node: ScriptedNode, settings: Partial<Transport.Settings> = {}) {
  const transport = yield* openTransport({
    ...{ clientId: "c", connectionTimeoutMillis: 1_000, credentialsTimeoutMillis: 1_000, requestTimeoutMillis: 1_000 },
    ...{ tls: undefined, sasl: undefined, redact: (text: string) => text },
    ...settings
  })
  yield* Effect.addFinalizer(() => Effect.sync(transport.destroyAll))
  const client = yield* Effect.promise(() => transport.open(node.address))
  return { client, transport }
})

/** The failure that a promise rejects with. */
export const failureOf = (
  promise: Promise<unknown>
): Effect.Effect<{ type: string; detail: string; waitedMillis?: number }> =>
  Effect.promise(() =>
    promise.then(
      (answer) => Promise.reject(new Error(`answered ${String(answer)}`)),
      (thrown) => thrown
    )
  )

/** Settings of a client that authenticates in one message. */
export const authenticating = (
  prepare: () => Promise<SaslMechanism.SaslMechanism> = async () => ({
    start: () => Buffer.from("secret"),
    next: () => undefined
  })
): Partial<Transport.Settings> => ({ sasl: { mechanism: "PLAIN", prepare } })
