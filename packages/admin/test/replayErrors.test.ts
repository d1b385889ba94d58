import { assert, describe, it } from "@effect/vitest"
import { Replay } from "@eventbus/core"
import { Schema } from "effect"
import * as Errors from "../src/internal/errorSchemas.ts"

const at = { topic: "orders.DLT", groupId: "billing" }

describe("a replay that another process is in the way of", () => {
  it("OPS-10 ADM-07 the answer says who works, since when and how far, and names nobody where nobody is known", () => {
    const other = { host: "host-a", pid: 17, sinceMillis: 0, replayed: 1_900, waitedMillis: 20_100 }
    const running = Schema.encodeUnknownSync(Errors.replayRunning)(new Replay.ReplayRunning({ ...at, ...other }))
    assert.deepInclude(running, { _tag: "ReplayRunning", ...at, ...other })
    assert.include(
      running.message,
      "process 17 on host 'host-a' has replayed dead letters of 'orders.DLT' for group 'billing' since 1970-01-01T00:00:00.000Z, 1900 of them so far"
    )
    const ended = new Replay.ReplayTakenOver({ ...at, replayed: 200 })
    assert.deepStrictEqual(Schema.encodeUnknownSync(Errors.replayTakenOver)(ended), {
      ...{ _tag: "ReplayTakenOver", message: ended.message, ...at, replayed: 200 }
    })
  })
})
