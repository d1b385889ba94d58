import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { failure } from "../../src/ClientFailure.ts"
import type { Cluster } from "../../src/internal/connection/cluster.ts"
import { makeCommit } from "../../src/internal/group/commits.ts"
import type { Membership } from "../../src/internal/group/membership.ts"
import { Ownership } from "../../src/internal/group/ownership.ts"
import type { NodeClient } from "../../src/Transport.ts"
import { cluster } from "../oneNode.ts"

const at = { topic: "t", partition: 0 }

/** A member that owns a partition since its generation 1. The coordinator accepts commits of `accepted`, and answers STALE_MEMBER_EPOCH to others. */
const makeMember = (accepted: number, epochs: ReadonlyArray<number>) => {
  const ownership = new Ownership()
  ownership.assign(1, [at])
  const node = { host: "localhost", port: 9092, isConnected: () => true } as NodeClient
  const connected: Cluster = {
    ...cluster().self,
    coordinator: () => Effect.succeed(node),
    whileCoordinator: (_kind, _key, _node, request) => request
  }
  const sent: Array<number> = []
  let heartbeats = 0
  const membership: Membership = {
    run: Effect.never,
    requestRejoin: () => {},
    heartbeatNow: () => void heartbeats++,
    memberId: () => "m",
    isUnconfirmed: () => false,
    identity: () => ({ memberId: "m", generation: epochs[Math.min(heartbeats, epochs.length - 1)]! }),
    sendCommit: (_node, { generation }) => {
      sent.push(generation)
      return generation === accepted ? Effect.void : Effect.fail(failure("STALE_MEMBER_EPOCH", "stale"))
    },
    leaving: () => undefined
  }
  const commit = makeCommit(connected, "g", ownership, membership)
  return { ownership, sent, heartbeats: () => heartbeats, commit: commit([{ ...at, generation: 1, offset: 5n }]) }
}

describe("commits", () => {
  it.live("CLN-10 a commit that crosses a new member epoch is repeated under that one", () =>
    Effect.gen(function* () {
      const { commit, sent, heartbeats } = makeMember(8, [7, 7, 8])
      yield* commit
      assert.deepStrictEqual(sent, [7, 7, 8])
      assert.strictEqual(heartbeats(), 2)
    })
  )

  it.live("CLN-10 it is not repeated when the assignment is over meanwhile", () =>
    Effect.gen(function* () {
      const { commit, ownership, sent } = makeMember(8, [7])
      yield* Effect.forkScoped(
        Effect.delay(
          Effect.sync(() => ownership.clear()),
          "50 millis"
        )
      )
      assert.strictEqual((yield* Effect.flip(commit))._tag, "StaleAssignment")
      assert.isAbove(sent.length, 1)
    }).pipe(Effect.scoped)
  )

  it.live("CLN-10 where the epoch stays stale, the caller hears that the group rebalances", () =>
    Effect.gen(function* () {
      const failed = yield* Effect.flip(makeMember(8, [7]).commit)
      assert.include(failed, { _tag: "ClientFailure", type: "REBALANCE_IN_PROGRESS" })
    })
  )
})
