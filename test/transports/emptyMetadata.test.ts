/** Brokers whose metadata names no node, as that of one that has just started: it says nothing about the cluster. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { connect } from "../../packages/kafka-client/src/internal/connection/cluster.ts"
import { securedOptions } from "../../packages/kafka-client/src/internal/connection/security.ts"
import { answering, type FakeBroker, makeFakeBroker } from "./fakeBroker.ts"
import { transports } from "./transports.ts"

const noNodes: FakeBroker["nodes"] = new Map()

/** A broker that knows its cluster, and one beside it. */
const twoBrokers = Effect.gen(function* () {
  const brokers = [yield* makeFakeBroker(answering), yield* makeFakeBroker(answering)] as const
  const nodes = new Map(brokers.map((broker, index) => [index + 1, broker]))
  for (const broker of brokers) broker.nodes = nodes
  return brokers
})

describe.concurrent.each(transports)("metadata that names no node ($name)", (on) => {
  const open = (retries: number, ...brokers: ReadonlyArray<FakeBroker>) =>
    connect(securedOptions({ brokers: brokers.map(({ address }) => address), retries }, on.open))

  it.live("CLN-06 C52 is no cluster: the next bootstrap address is asked", () =>
    Effect.gen(function* () {
      const [empty, good] = yield* twoBrokers
      empty.nodes = noNodes
      const cluster = yield* open(0, empty, good)
      assert.strictEqual(cluster.id, "fake")
      const { brokers } = yield* cluster.describe
      assert.deepStrictEqual(
        brokers.map(({ id }) => id),
        [1, 2]
      )
    })
  )

  it.live("CLN-06 C52 leaves the nodes that are known, and a node that knows the cluster answers", () =>
    Effect.gen(function* () {
      const [first, second] = yield* twoBrokers
      const cluster = yield* open(0, first, second)
      first.nodes = noNodes
      for (let round = 0; round < 10; round++) {
        const { brokers } = yield* cluster.describe
        assert.lengthOf(brokers, 2)
        yield* cluster.node(1)
      }
    })
  )

  it.live("CLN-06 C52 of a node that is known leads back to the bootstrap addresses", () =>
    Effect.gen(function* () {
      const [only, other] = yield* twoBrokers
      only.nodes = new Map([[1, only]])
      const cluster = yield* open(0, only, other)
      only.nodes = noNodes
      const { brokers } = yield* cluster.describe
      assert.deepStrictEqual(
        brokers.map(({ port }) => port),
        [only.port, other.port]
      )
    })
  )

  it.live(
    "CLN-06 C52 of every broker is a failure that names them; the nodes stay known, and the next look works",
    () =>
      Effect.gen(function* () {
        const [first, second] = yield* twoBrokers
        const cluster = yield* open(0, first, second)
        const { nodes } = first
        first.nodes = noNodes
        second.nodes = noNodes
        const failed = yield* Effect.flip(cluster.describe)
        assert.strictEqual(failed.type, "CONNECTION")
        for (const { port } of [first, second])
          assert.include(failed.detail, `the broker at 127.0.0.1:${port} names no node of its cluster`)
        yield* cluster.node(2)
        first.nodes = nodes
        assert.lengthOf((yield* cluster.describe).brokers, 2)
      })
  )

  it.live("CLN-06 C52 at the start is asked for again until the broker knows its cluster", () =>
    Effect.gen(function* () {
      const broker = yield* makeFakeBroker(answering)
      const { nodes } = broker
      broker.nodes = noNodes
      let looks = 0
      broker.behave = ({ answer, apiKey }) => {
        if (apiKey === 3 && ++looks === 3) broker.nodes = nodes
        answer()
      }
      assert.strictEqual((yield* open(3, broker)).id, "fake")
      assert.strictEqual(looks, 3)
    })
  )
})
