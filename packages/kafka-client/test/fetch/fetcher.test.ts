/** The fetch loops of a session where something in them throws. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { FetchListener } from "../../src/internal/fetch/fetchAnswer.ts"
import { makeFetcher } from "../../src/internal/fetch/fetcher.ts"
import { Ownership } from "../../src/internal/group/ownership.ts"
import { cluster } from "../oneNode.ts"

const options = {
  topics: ["t"],
  maxWaitMillis: 100,
  maxBytesOf: () => 1_000,
  maxRecordBytes: 1_000,
  isolation: "read_committed" as const
}

describe("fetch loops", () => {
  it.effect("ruling 86: a defect in a loop ends the session, which is made anew, and is no silence for ever", () =>
    Effect.gen(function* () {
      const { self, has } = cluster(Effect.die(new Error("a bug")))
      has(1)
      const ended: Array<string> = []
      const listener: FetchListener = {
        taken: Effect.void,
        emit: () => {},
        failSession: ({ detail }) => Effect.sync(() => void ended.push(detail)),
        topicDeleted: () => {},
        topicChanged: () => {}
      }
      const ownership = new Ownership()
      for (const owned of ownership.assign(1, [{ topic: "t", partition: 0 }]).added) owned.phase = "waiting"
      ownership.seek({ topic: "t", partition: 0 }, 0n)
      const { refresh } = makeFetcher(self, options, ownership, new Map(), yield* Effect.scope, listener)
      yield* refresh
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(ended, ["a bug"])
    })
  )
})
