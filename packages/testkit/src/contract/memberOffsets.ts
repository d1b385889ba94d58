/** Outcomes: the group fences a member that commits offsets in a transaction (KIP-447). */
import type { Broker } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import {
  admin,
  assertTag,
  eventually,
  failure,
  type Outcome,
  quietTime,
  record,
  topic,
  transactional,
  unique
} from "./harness.ts"
import { join, shared } from "./probe.ts"

/** How a group refuses a member that it knows in a newer generation. */
const refusals = ["RebalanceInProgress", "StaleAssignment"] as const

const committed = (groupId: string, name: string) =>
  Effect.map(
    Effect.flatMap(admin, ({ committedOffsets }) => committedOffsets(groupId, [name])),
    (offsets) => offsets.map(({ partition, offset }) => [partition, offset])
  )

/** The offsets are refused, whether or not the program of the transaction looks at the answer, and nothing of the transaction is seen. */
const isRefused = Effect.fnUntraced(function* (
  member: Broker.ConsumerGroupMetadata,
  name: string,
  tag: "StaleAssignment" | "InstanceFenced"
) {
  const copies = yield* topic()
  const producer = yield* transactional()
  const offsets = [{ topic: name, partition: 0, offset: 7n }]
  const both = (tx: Broker.Transaction) =>
    Effect.andThen(tx.send(record(copies, "zombie")), tx.sendOffsets(member, offsets))
  assertTag(yield* failure(producer.transaction(both)), tag)
  assertTag(yield* failure(producer.transaction((tx) => Effect.ignore(both(tx)))), tag)
  yield* producer.transaction((tx) => tx.send(record(copies, "good")))
  const reader = yield* join({ groupId: unique("group"), topics: [copies] })
  yield* reader.collects(1)
  yield* quietTime
  assert.deepStrictEqual(reader.values, ["good"])
  assert.deepStrictEqual(yield* committed(member.groupId, name), [])
})

export const memberOffsets: ReadonlyArray<Outcome> = [
  {
    title: "CLN-14: a member that the group does not have any more cannot commit offsets in a transaction",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const gone = yield* Effect.scoped(
        Effect.gen(function* () {
          const probe = yield* join({ groupId: unique("group"), topics: [name] })
          yield* probe.owns(1)
          return yield* probe.session.groupMetadata([probe.own(name)])
        })
      )
      yield* isRefused(gone, name, "StaleAssignment")
    })
  },
  {
    title: "CLN-14: a static member whose name another one has taken cannot commit offsets in a transaction",
    // Where the broker assigns, nobody takes the name of a member that lives.
    needs: ({ assignment, staticMembership }) => assignment === "members" && staticMembership === "supported",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const options = { groupId: unique("group"), topics: [name], groupInstanceId: "twin" }
      const older = yield* join(options)
      yield* older.owns(1)
      const fenced = yield* older.session.groupMetadata([older.own(name)])
      const newer = yield* join(options)
      yield* newer.owns(1)
      yield* isRefused(fenced, name, "InstanceFenced")
    })
  },
  {
    title:
      "CLN-14: after a rebalance a member commits offsets in a transaction for the partition that it kept, and none for the one that moved",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const options = { groupId: unique("group"), topics: [name] }
      const first = yield* join(options)
      yield* first.owns(2)
      const before = [first.own(name, 0), first.own(name, 1)]
      const member = yield* first.session.groupMetadata(before)
      const second = yield* join(options)
      yield* shared([first, second], [1, 1])
      const [kept] = [...first.owned.values()]
      const moved = before.find(({ partition }) => partition !== kept?.partition)
      if (kept === undefined || moved === undefined) return assert.fail("one partition stays, and one moves")
      const producer = yield* transactional()
      const copies = yield* topic()
      assertTag(yield* failure(first.session.groupMetadata([moved], member)), "StaleAssignment")
      yield* producer.transaction((tx) =>
        Effect.gen(function* () {
          yield* tx.send(record(copies, "of the stayer"))
          const offsets = (partition: number, offset: bigint) => [{ topic: name, partition, offset }]
          assertTag(yield* failure(tx.sendOffsets(member, offsets(moved.partition, 7n))), ...refusals)
          const next = yield* first.session.groupMetadata([kept], member)
          yield* tx.sendOffsets(next, offsets(kept.partition, 8n))
        })
      )
      const reader = yield* join({ groupId: unique("group"), topics: [copies] })
      yield* reader.collects(1)
      yield* eventually(
        Effect.map(committed(options.groupId, name), (found) => assert.deepStrictEqual(found, [[kept.partition, 8n]]))
      )
    })
  }
]
