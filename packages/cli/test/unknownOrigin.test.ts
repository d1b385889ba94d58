/** OPS-03: a dead letter that another client wrote, without a header of anybody, says that its origin is unknown: it shows no place as one where the record was first. */
import { assert, describe, it } from "@effect/vitest"
import { AdminWeb } from "@eventbus/admin"
import { Effect } from "effect"
import { eventually, everything, start, token } from "../../admin/test/api.ts"
import { withToken } from "./eventbus.ts"
import { served } from "./served.ts"

const origin = ["originalTopic", "originalPartition", "originalOffset"] as const

/** One letter of the connector at 0@0, and one of somebody else at 0@1. */
const withLetters = Effect.gen(function* () {
  const program = yield* start()
  yield* program.append("orders", "good", "bad")
  const count = (expected: number) =>
    eventually(program.call("GET", "/eventbus/bindings/orders/dlt/stats"), ({ body }) => body.count === expected)
  yield* count(1)
  yield* program.append("orders.DLT", "by hand")
  yield* count(2)
  const web = yield* Effect.provideContext(AdminWeb.make({ authorizer: everything }), program.context)
  const url = yield* served(web)
  return (command: string, ...args: ReadonlyArray<string>) =>
    Effect.map(withToken(token, "dlt", command, "orders", ...args, "--url", url), ({ out }) => out)
})

describe("a dead letter without an origin", () => {
  it.live(
    "OPS-03 show says that nobody knows where it came from and why, and prints no place, reason or attempts",
    () =>
      Effect.gen(function* () {
        const dlt = yield* withLetters
        const shown = yield* dlt("show", "0@1")
        assert.match(
          shown,
          /^came from +unknown: no header says where the record was first; a replay publishes it to the topic of the binding$/m
        )
        assert.match(shown, /^error +unknown: no header says why it failed$/m)
        assert.match(shown, /^written +\d{4}-\S+Z$/m)
        assert.match(shown, /^value +by hand$/m)
        for (const absent of ["orders.DLT", "attempts", "dead-lettered"]) assert.notInclude(shown, absent)
        const known = yield* dlt("show", "0@0")
        assert.match(known, /^came from +orders-0@1$/m)
        assert.match(known, /^attempts +1$/m)
        assert.match(known, /^dead-lettered +\S+Z {2}NON_RETRYABLE/m)
        assert.notInclude(known, "unknown")
      })
  )

  it.live("OPS-03 list and groups say it, too", () =>
    Effect.gen(function* () {
      const dlt = yield* withLetters
      const [other = "", own = ""] = (yield* dlt("list")).trimEnd().split("\n")
      assert.match(other, /^0@1 .* unknown: no header says why it failed {2}origin unknown$/)
      assert.match(own, /^0@0 .* Refused$/)
      const groups = yield* dlt("groups")
      assert.match(groups, /unknown +origin unknown$/m)
      assert.match(groups, /Refused \S.*$/m)
      assert.strictEqual(groups.split("origin unknown").length, 2)
    })
  )

  it.live("OPS-03 with --json the place is absent, not that of the letter itself", () =>
    Effect.gen(function* () {
      const dlt = yield* withLetters
      const { letters } = JSON.parse(yield* dlt("list", "--json"))
      const { groups } = JSON.parse(yield* dlt("groups", "--json"))
      const shown = JSON.parse(yield* dlt("show", "0@1", "--json"))
      const ofGroup = (name: string) => groups.find((group: { origin: string }) => group.origin === name)
      for (const letter of [letters[0], shown, ofGroup("unknown")]) {
        assert.strictEqual(letter.origin, "unknown")
        for (const part of origin) assert.notProperty(letter, part)
      }
      assert.deepInclude(letters[1], {
        ...{ origin: "eventbus", originalTopic: "orders", originalPartition: 0, originalOffset: "1" }
      })
      assert.deepInclude(ofGroup("eventbus"), { originalTopic: "orders" })
    })
  )
})
