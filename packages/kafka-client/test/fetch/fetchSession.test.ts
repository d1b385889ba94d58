/** Fetch sessions (KIP-227) against a node that keeps them as a broker does. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as fc from "fast-check"
import { failure, Local } from "../../src/ClientFailure.ts"
import { fetchFrom } from "../../src/internal/fetch/fetchCall.ts"
import { type FetchedFrom, FetchSession } from "../../src/internal/fetch/fetchSession.ts"
import { Reader } from "../../src/internal/protocol/reader.ts"
import type { NodeClient, Request } from "../../src/Transport.ts"

const ids = new Map([
  ["a", Buffer.alloc(16, 1).toString("base64url")],
  ["b", Buffer.alloc(16, 2).toString("base64url")]
])

/** The fields of a request of version 13. */
const read = (body: Buffer) => {
  const reader = new Reader(body)
  const limits = { replica: reader.int32(), wait: reader.int32(), minBytes: reader.int32(), maxBytes: reader.int32() }
  const request = {
    ...limits,
    ...{ isolation: reader.int8(), id: reader.int32(), epoch: reader.int32() },
    topics: reader.compactArray(() => {
      const topic = reader.uuid() ?? ""
      const partitions = reader.compactArray(() => {
        const partition = reader.int32()
        reader.int32()
        const offset = reader.int64()
        reader.skip(4 + 8)
        const maxBytes = reader.int32()
        reader.tags()
        return [`${topic}/${partition}`, `${offset} ${maxBytes}`] as const
      })
      reader.tags()
      return partitions
    }),
    forgotten: reader.compactArray(() => {
      const topic = reader.uuid() ?? ""
      const partitions = reader.compactArray(() => `${topic}/${reader.int32()}`)
      reader.tags()
      return partitions
    })
  }
  assert.strictEqual(reader.compactString(), "")
  reader.tags()
  assert.strictEqual(reader.rest().length, 0)
  return { ...request, topics: request.topics.flat(), forgotten: request.forgotten.flat() }
}

type Fault = "none" | "evicted" | "lost request" | "lost answer" | "no session"

/** A node with one session at most. It answers no records. `fetched`: what it would read for the last request. */
class Node implements NodeClient {
  readonly host = "localhost"
  readonly port = 9092
  fault: Fault = "none"
  fetched: Array<readonly [string, string]> = []
  /** How many partitions each request has named, and how many it has forgotten. */
  readonly log: Array<readonly [number, number]> = []
  readonly maxVersion: number
  byName = 0
  #session: { readonly id: number; epoch: number; readonly partitions: Map<string, string> } | undefined
  #ids = 0

  constructor(maxVersion = 17) {
    this.maxVersion = maxVersion
  }

  connect = async () => {}
  disconnect = async () => {}
  isConnected = () => true
  isBusy = () => false
  closeAtOnce = () => {}
  versionsOf = () => ({ min: 4, max: this.maxVersion })
  features = async () => new Map()

  send = async <A>({ apiVersion, encode }: Request<A>): Promise<A> => {
    const lost = failure(Local.timeout, "lost")
    if (apiVersion < 13) {
      this.byName++
      return { errorCode: 0, partitions: [] } as A
    }
    const { fault } = this
    this.fault = "none"
    if (fault === "lost request") throw lost
    if (fault === "evicted") this.#session = undefined
    const answer = this.#handle(encode().bytes, fault === "no session")
    if (fault === "lost answer") throw lost
    return { partitions: [], sessionId: 0, ...answer } as A
  }

  #handle(body: Buffer, refusesSessions: boolean): { readonly errorCode: number; readonly sessionId?: number } {
    const { id, epoch, topics, forgotten } = read(body)
    this.log.push([topics.length, forgotten.length])
    if (epoch === 0) {
      if (id !== 0 && this.#session?.id === id) this.#session = undefined
      this.fetched = topics
      if (refusesSessions) return { errorCode: 0 }
      this.#session = { id: ++this.#ids, epoch: 1, partitions: new Map(topics) }
      return { errorCode: 0, sessionId: this.#ids }
    }
    if (this.#session?.id !== id) return { errorCode: 70 }
    if (this.#session.epoch !== epoch) return { errorCode: 71 }
    this.#session.epoch++
    for (const [key, position] of topics) this.#session.partitions.set(key, position)
    for (const key of forgotten) this.#session.partitions.delete(key)
    this.fetched = [...this.#session.partitions]
    return { errorCode: 0, sessionId: id }
  }
}

const fetchWith = (node: Node, session: FetchSession, positions: ReadonlyArray<FetchedFrom>, known = ids) =>
  fetchFrom(node, session, known, "read_committed", positions, 100)

const at = (topic: string, partition: number, offset: number): FetchedFrom => ({
  ...{ topic, partition, offset: BigInt(offset), maxBytes: 1_000 }
})

const wanted = (positions: ReadonlyArray<FetchedFrom>) =>
  positions
    .map(
      ({ topic, partition, offset, maxBytes }) => [`${ids.get(topic)}/${partition}`, `${offset} ${maxBytes}`] as const
    )
    .sort()

const requests = fc.array(
  fc.record({
    positions: fc.uniqueArray(
      fc.record({
        topic: fc.constantFrom("a", "b"),
        partition: fc.nat(3),
        offset: fc.bigInt(0n, 3n),
        maxBytes: fc.constantFrom(10, 20)
      }),
      { selector: ({ topic, partition }) => `${topic}/${partition}` }
    ),
    fault: fc.constantFrom<Fault>("none", "none", "none", "evicted", "lost request", "lost answer", "no session")
  }),
  { minLength: 1, maxLength: 20 }
)

describe("CLN-13 fetch sessions", () => {
  it.effect("CLN-13 the node fetches what was asked for, whatever it has forgotten and whatever got lost", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(requests, async (all) => {
          const [node, session] = [new Node(), new FetchSession()]
          for (const { positions, fault } of all) {
            node.fault = fault
            const result = await Effect.runPromise(Effect.result(fetchWith(node, session, positions)))
            assert.strictEqual(Result.isFailure(result), fault.startsWith("lost"))
            if (Result.isSuccess(result)) assert.deepStrictEqual([...node.fetched].sort(), wanted(positions))
          }
        })
      )
    )
  )

  it.effect("CLN-13 a request names only what has changed, and what is not fetched any more", () =>
    Effect.gen(function* () {
      const [node, session] = [new Node(), new FetchSession()]
      yield* fetchWith(node, session, [at("a", 0, 1), at("a", 1, 1), at("b", 0, 1)])
      yield* fetchWith(node, session, [at("b", 0, 1), at("a", 0, 5), at("a", 1, 1)])
      yield* fetchWith(node, session, [at("a", 0, 5), at("a", 1, 1)])
      yield* fetchWith(node, session, [at("a", 0, 5), at("a", 1, 1)])
      assert.deepStrictEqual(node.log, [
        [3, 0],
        [1, 0],
        [0, 1],
        [0, 0]
      ])
      node.fault = "evicted"
      yield* fetchWith(node, session, [at("a", 0, 6)])
      assert.deepStrictEqual(node.log.slice(4), [
        [1, 1],
        [1, 0]
      ])
    })
  )

  it.effect("CLN-18 names are sent to a node before 3.1, and where a topic has no id", () =>
    Effect.gen(function* () {
      const [old, node] = [new Node(12), new Node()]
      yield* fetchWith(old, new FetchSession(), [at("a", 0, 1)])
      yield* fetchWith(node, new FetchSession(), [at("a", 0, 1)], new Map())
      assert.deepStrictEqual([old.byName, node.byName, node.log.length], [1, 1, 0])
    })
  )
})
