/** A TCP server that speaks just enough of Kafka's protocol for look-ups, and misbehaves on demand. */
import { createServer, type Socket } from "node:net"
import type { Transport } from "@eventbus/kafka-client"
import { Effect, type Scope } from "effect"
import { Writer } from "../../packages/kafka-client/src/internal/protocol/writer.ts"

export const apiKey = {
  metadata: 3,
  heartbeat: 12,
  findCoordinator: 10,
  saslHandshake: 17,
  apiVersions: 18,
  describeGroups: 15
}

export interface Request {
  readonly apiKey: number
  readonly apiVersion: number
  readonly correlationId: number
  readonly socket: Socket
  /** Behind the client id. */
  readonly body: Buffer
  /** Sends an answer, by default the true one. */
  readonly answer: (body?: Writer) => void
}

export interface FakeBroker {
  readonly address: string
  readonly port: number
  /** Answers a request, or does something else with it. */
  behave: (request: Request) => void
  /** The nodes that its metadata names, by id. */
  nodes: ReadonlyMap<number, FakeBroker>
  /** The versions that it speaks, by API. */
  spoken: ReadonlyMap<number, Transport.VersionRange>
  /** The versions of the features that its cluster has agreed on. */
  features: ReadonlyMap<string, number>
  /** The id of the coordinator of everything. */
  coordinator: number
  /** Connections that are open now. */
  readonly connections: () => number
  /** Requests so far. */
  readonly requests: () => number
}

/** Answers every request. */
export const answering = ({ answer }: Request): void => answer()

/** Answers nothing. */
export const silent = (): void => {}

/** Answers nothing until it is thawed, and then everything, as a process between SIGSTOP and SIGCONT. */
export const frozen = () => {
  const held: Array<() => void> = []
  return {
    behave: ({ answer }: Request): void => void held.push(() => answer()),
    thaw: () => {
      for (const answer of held.splice(0)) answer()
    }
  }
}

/** Answers late. */
export const after =
  (millis: number) =>
  ({ answer }: Request): void =>
    void setTimeout(() => answer(), millis)

/** An answer with its length and correlation id. */
export const frame = (correlationId: number, body: Buffer): Buffer => {
  const head = Buffer.alloc(8)
  head.writeInt32BE(body.length + 4, 0)
  head.writeInt32BE(correlationId, 4)
  return Buffer.concat([head, body])
}

/** The newest version of each API that a broker speaks unless a test says otherwise. */
const newest: ReadonlyArray<readonly [key: number, version: number]> = [
  [apiKey.metadata, 5],
  [apiKey.findCoordinator, 1],
  [apiKey.heartbeat, 1],
  [apiKey.saslHandshake, 1],
  [36, 1]
]

/** The first version of ApiVersions that is flexible. */
const flexibleApiVersions = 3

/** Tagged fields of ApiVersions: the epoch of the features, and the features. */
const featureFields = (features: FakeBroker["features"]): Writer => {
  if (features.size === 0) return new Writer().noTags()
  const list = new Writer()
  list.compactArray([...features], ([name, level]) => list.compactString(name).int16(level).int16(level).noTags())
  const { bytes } = list.body
  return new Writer().unsignedVarint(2).int8(1).int8(8).int64(1n).int8(2).unsignedVarint(bytes.length).raw(bytes)
}

const apiVersions = ({ features, spoken }: FakeBroker, version: number): Writer => {
  const writer = new Writer().int16(0)
  const write = ([key, { min, max }]: readonly [number, Transport.VersionRange]) =>
    writer.int16(key).int16(min).int16(max)
  return version < flexibleApiVersions
    ? writer.array([...spoken], write).int32(0)
    : writer
        .compactArray([...spoken], (range) => write(range).noTags())
        .int32(0)
        .raw(featureFields(features).body.bytes)
}

const metadata = (nodes: FakeBroker["nodes"]): Writer => {
  const writer = new Writer().int32(0)
  return writer
    .array([...nodes], ([id, { port }]) => writer.int32(id).string("127.0.0.1").int32(port).nullableString(null))
    .string("fake")
    .int32(1)
    .int32(0)
}

const coordinatorOf = ({ coordinator, nodes }: FakeBroker): Writer =>
  new Writer()
    .int32(0)
    .int16(0)
    .nullableString(null)
    .int32(coordinator)
    .string("127.0.0.1")
    .int32(nodes.get(coordinator)?.port ?? 0)

const bodyOf = (broker: FakeBroker, key: number, version: number): Writer => {
  if (key === apiKey.apiVersions) return apiVersions(broker, version)
  if (key === apiKey.metadata) return metadata(broker.nodes)
  if (key === apiKey.findCoordinator) return coordinatorOf(broker)
  return new Writer().int32(0).int16(0)
}

/** Starts on a free port of `host`, and ends with the Scope. Its metadata names itself, as node 1. */
export const makeFakeBroker = (
  behave: FakeBroker["behave"],
  { host = "127.0.0.1", port = 0 } = {}
): Effect.Effect<FakeBroker, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<{ broker: FakeBroker; close: () => void }>((resume) => {
      const open = new Set<Socket>()
      let requests = 0
      const server = createServer((socket) => {
        open.add(socket)
        socket.on("close", () => open.delete(socket)).on("error", () => {})
        let rest: Buffer = Buffer.alloc(0)
        socket.on("data", (bytes: Buffer) => {
          rest = Buffer.concat([rest, bytes])
          while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
            const [key, apiVersion, correlationId] = [rest.readInt16BE(4), rest.readInt16BE(6), rest.readInt32BE(8)]
            const body = rest.subarray(14 + rest.readInt16BE(12), 4 + rest.readInt32BE(0))
            rest = rest.subarray(4 + rest.readInt32BE(0))
            requests++
            const answer = (given = bodyOf(broker, key, apiVersion)) =>
              void socket.write(frame(correlationId, given.body.bytes))
            broker.behave({ apiKey: key, apiVersion, correlationId, socket, body, answer })
          }
        })
      })
      let broker: FakeBroker
      server.listen(port, host, () => {
        const at = server.address()
        const bound = typeof at === "object" && at !== null ? at.port : 0
        broker = {
          address: `${host}:${bound}`,
          port: bound,
          behave,
          nodes: new Map(),
          features: new Map(),
          spoken: new Map(newest.map(([key, max]) => [key, { min: 0, max }])),
          coordinator: 1,
          connections: () => open.size,
          requests: () => requests
        }
        broker.nodes = new Map([[1, broker]])
        const close = () => {
          server.close()
          for (const socket of open) socket.destroy()
        }
        resume(Effect.succeed({ broker, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  ).pipe(Effect.map(({ broker }) => broker))
