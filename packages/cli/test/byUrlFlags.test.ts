/** OPS-22: what the commands by `--url` refuse before they ask, and what `eventbus status` says beside the health. */
import { assert, describe, it } from "@effect/vitest"
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Effect } from "effect"
import { eventually, Refused, start, token } from "../../admin/test/api.ts"
import { withToken } from "./eventbus.ts"
import { served } from "./served.ts"

const refusing = Binding.make("orders", {
  ...{ topic: "orders", groupId: "orders-group", value: Serde.string, retry: RetryPolicy.none },
  onError: { Refused: Route.deadLetter("refused") },
  handler: () => Effect.fail(new Refused())
})

describe("eventbus --url", () => {
  it.live("OPS-22 a value that no request takes is wrong usage, named by its flag with what is allowed", () =>
    Effect.gen(function* () {
      const { web } = yield* start({ bindings: [refusing] })
      const url = yield* served(web)
      const long = "x".repeat(10_000)
      const why = "a text that says why, for the log: 1 to 1000 characters"
      const topic =
        "a topic of the binding: that of the record where it is not the main one, or that of the dead letters that are meant"
      for (const [line, flag, allowed] of [
        [["dlt", "list", "orders", "--text", ""], "text", "a text, 1 to 200 characters"],
        [["audit", "--binding", ""], "binding", "the name of a binding, or {cluster}:{binding}"],
        [["pause", "orders", "--reason", long], "reason", why],
        [["stop", "orders", "--reason", long], "reason", why],
        [["held", "skip", "orders", "0@1", "--reason", long], "reason", why],
        [["held", "dead-letter", "orders", "0@1", "--reason", "x", "--topic", "!"], "topic", topic]
      ] as const) {
        const err = `--${flag} has a value that no process takes; allowed is ${allowed}\n`
        assert.deepStrictEqual(yield* withToken(token, ...line, "--url", url), { code: 2, out: "", err })
      }
      for (const [flag, value, allowed] of [
        ["--group", "nope", "a fingerprint such as v1-9f86d081884c7d65 or own-payments"],
        ["--before", "zzz", "the cursor of the page before"]
      ] as const) {
        const err = `${flag} is ${value}; allowed is ${allowed}\n`
        const ended = yield* withToken(token, "dlt", "list", "orders", flag, value, "--url", url)
        assert.deepStrictEqual(ended, { code: 2, out: "", err })
      }
    })
  )

  it.live("OPS-22 status says how many dead letters a binding has, and stays 0", () =>
    Effect.gen(function* () {
      const { web, append } = yield* start({ bindings: [refusing] })
      const url = yield* served(web)
      yield* append("orders", "one", "two")
      const { code } = yield* eventually(withToken(token, "status", "--url", url), ({ out }) =>
        /\ndefault:orders {2}RUNNING {2}since \S+ {2}lag 0 {2}2 dead letters\n {2}newest failure .*\n$/.test(out)
      )
      assert.strictEqual(code, 0)
    })
  )
})
