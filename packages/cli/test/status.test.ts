/** OPS-22: `status` shows at three in the morning how many records wait for a retry, and what failed last. */
import { assert, describe, it } from "@effect/vitest"
import { AdminWeb, Authorizer } from "@eventbus/admin"
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Effect, Redacted, Schema } from "effect"
import { callOf, eventually, start, token } from "../../admin/test/api.ts"
import { held } from "../../admin/test/parkedOrders.ts"
import { withToken } from "./eventbus.ts"
import { served } from "./served.ts"

class GatewayDown extends Schema.TaggedError<GatewayDown>()("GatewayDown", { order: Schema.String }) {
  override get message(): string {
    return `no answer for ${this.order}\n${"x".repeat(2_000)}`
  }
}

const viewer = "the-token-of-a-viewer"
const authorizer = Authorizer.fromTokens([
  { token: Redacted.make(token), name: "on-call", permissions: ["view", "view-payload", "operate"] },
  { token: Redacted.make(viewer), name: "viewer", permissions: ["view"] }
])

/** Every value that starts with `bad` fails. */
const process = Effect.fnUntraced(function* (tiers: ReadonlyArray<`${number} ${"millis" | "hours"}`>) {
  const orders = Binding.make("orders", {
    ...{ topic: "orders", groupId: "billing", value: Serde.string },
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: tiers.map((delay) => ({ delay, jitter: 0 })) }),
    onError: { GatewayDown: Route.retry },
    handler: ({ value }) => (value.startsWith("bad") ? Effect.fail(new GatewayDown({ order: value })) : Effect.void)
  })
  const program = yield* start({ bindings: [orders], audit: {} })
  const web = yield* Effect.provideContext(AdminWeb.make({ authorizer }), program.context)
  const url = yield* served(web)
  const status = (as: string, ...args: ReadonlyArray<string>) => withToken(as, "status", ...args, "--url", url)
  return { ...program, status, call: callOf(web) }
})

const bindings = "/eventbus/bindings"

describe("eventbus status", () => {
  it.live(
    "OPS-22 says how many records wait in which tier, and the newest failure with class, message, place and time",
    () =>
      Effect.gen(function* () {
        const { append, status } = yield* process(["1 hours", "2 hours"])
        const calm = JSON.parse((yield* status(token, "--json")).out).bindings[0]
        assert.deepStrictEqual(
          [calm.newestFailure, calm.retries?.map(({ waiting }: { waiting: number }) => waiting)],
          [undefined, calm.retries?.map(() => 0)]
        )
        yield* append("orders", "good", "bad 1", "bad 2", "good")
        const { code, out } = yield* eventually(status(token), ({ out }) => out.includes("of it 2"))
        assert.strictEqual(code, 0)
        assert.match(out, /^default:orders {2}RUNNING {2}since \S+ {2}lag 2 {2}of it 2 in retries \(tier 1: 2\)$/m)
        const [, time = "", rest = ""] = /^ {2}newest failure (\S+Z) {2}(.*)$/m.exec(out) ?? []
        assert.isTrue(Math.abs(Date.now() - Date.parse(time)) < 60_000, time)
        assert.match(rest, /^orders-0@2 {2}GatewayDown: no answer for bad 2\S+x+…$/)
        assert.isBelow(rest.length, 250)
        const [shown] = JSON.parse((yield* status(token, "--json")).out).bindings
        assert.deepStrictEqual(shown.retries, [
          { topic: "orders.retry-1", tier: 1, waiting: 2 },
          { topic: "orders.retry-2", tier: 2, waiting: 0 }
        ])
        const { message, at, ...failure } = shown.newestFailure
        assert.deepStrictEqual(failure, { position: "orders-0@2", exceptionClass: "GatewayDown" })
        assert.deepStrictEqual([message.startsWith("no answer for bad 2\n"), message.length, at], [true, 1_024, time])
      })
  )

  it.live(
    "OPS-22 a failed retry names the copy and the place where its record was first; a stop does not forget it",
    () =>
      Effect.gen(function* () {
        const { append, status, call } = yield* process(["50 millis"])
        yield* append("orders", "good", "bad 1")
        const { out } = yield* eventually(status(token), ({ out }) => out.includes("retry"))
        assert.match(
          out,
          /^ {2}newest failure \S+ {2}orders\.retry-1-0@\d+, first orders-0@1 {2}GatewayDown: no answer/m
        )
        assert.strictEqual((yield* call("POST", `${bindings}/orders/stop`)).status, 200)
        const stopped = (yield* status(token)).out
        assert.include(stopped, "orders  STOPPED")
        assert.include(stopped, ", first orders-0@1  GatewayDown")
      })
  )

  it.live("OPS-22 the message is for callers who may see payloads and ask for it: others get class and place", () =>
    Effect.gen(function* () {
      const { append, status, call, admin } = yield* process(["1 hours"])
      yield* append("orders", "bad 1")
      const { out } = yield* eventually(status(viewer), ({ out }) => out.includes("newest"))
      assert.match(out, /^ {2}newest failure \S+ {2}orders-0@0 {2}GatewayDown$/m)
      const asked = yield* call("GET", `${bindings}?messages=true`)
      assert.include(asked.text, "no answer for bad 1")
      for (const path of [bindings, `${bindings}/orders`]) {
        const { text } = yield* call("GET", path)
        assert.deepStrictEqual([text.includes("GatewayDown"), text.includes("no answer")], [true, false], path)
      }
      const wrong = yield* call("GET", `${bindings}?messages=false`)
      assert.deepStrictEqual([wrong.status, wrong.body.issues[0].path], [400, "messages"])
      const seen = yield* eventually(admin.audit({}), ({ entries }) => entries.length > 0)
      assert.isTrue(seen.entries.every(({ by }) => by === "on-call"))
    })
  )

  it.live("OPS-22 PKO-07 says how many keys are held, and which has been held for longest", () =>
    Effect.gen(function* () {
      const { context, memory, failing } = yield* held()
      const url = yield* served(yield* Effect.provideContext(AdminWeb.make({ authorizer }), context))
      const status = (...args: ReadonlyArray<string>) => withToken(token, "status", ...args, "--url", url)
      failing.add("c1")
      const bytes = (text: string) => new TextEncoder().encode(text)
      yield* memory.append("orders", 0, [{ key: bytes("customer-c"), value: bytes("c1") }])
      const { code, out } = yield* eventually(status(), ({ out }) => out.includes("2 keys are held"))
      assert.strictEqual(code, 0)
      const [, since] =
        /^ {2}2 keys are held, the oldest since (\S+Z) by orders-0@0: 'eventbus parked list orders' lists them$/m.exec(
          out
        ) ?? []
      const [{ heldKeys }] = JSON.parse((yield* status("--json")).out).bindings
      assert.deepStrictEqual(heldKeys, { count: 2, oldest: "orders-0@0", since })
      failing.clear()
      yield* Effect.forEach(["0@0", "0@3"], (position) =>
        withToken(token, "parked", "retry", "orders", position, "--url", url, "--reason", "INC-1204")
      )
      yield* eventually(status("--json"), ({ out }) => JSON.parse(out).bindings[0].heldKeys === undefined)
      assert.notInclude((yield* status()).out, "held")
    })
  )
})
