/** PKO-05: parked keys over HTTP: who may see and decide what, about exactly the record that the caller saw. */
import { assert, describe, it } from "@effect/vitest"
import { AdminWeb, Authorizer, EventBusAdmin } from "@eventbus/admin"
import { type Binding, Broker } from "@eventbus/core"
import { Context, Effect, Layer, Redacted } from "effect"
import { type Answer, callOf, eventually } from "./api.ts"
import { canary, held, stranded, type WithParkedKey } from "./parkedOrders.ts"

const shown = ({ status, body }: Answer) => [status, body._tag]
const of = "/eventbus/bindings/orders"

const untilHandled = (handled: ReadonlyArray<string>, ...expected: ReadonlyArray<string>) =>
  Effect.map(
    eventually(
      Effect.sync(() => handled.length),
      (length) => length === expected.length
    ),
    () => assert.deepStrictEqual(handled, expected)
  )

/** The operations of a program that runs no bindings. */
const outsideOf = Effect.fnUntraced(function* (binding: Binding.Binding<never>, broker: Broker.Broker["Service"]) {
  const layer = EventBusAdmin.layerOutside({ bindings: [binding] }).pipe(
    Layer.provide(Layer.succeed(Broker.Broker, broker))
  )
  return Context.get(yield* Layer.build(layer), EventBusAdmin.EventBusAdmin)
})

const lettersIn = (memory: WithParkedKey["memory"]) =>
  Effect.map(memory.log("orders.DLT", 0), (log) => log.map(({ value }) => new TextDecoder().decode(value!)))

describe("PKO-05 parked keys over HTTP", () => {
  it.live(
    "PKO-05 accept-loss dead-letters exactly as many stranded keys as the caller saw, and later records flow",
    () =>
      Effect.gen(function* () {
        const { call, handled, memory } = yield* stranded()
        const { body } = yield* call("GET", `${of}/parked`)
        assert.deepStrictEqual(body.counts, { held: 0, waiting: 0, draining: 0, stranded: 1 })
        const changed = yield* call("POST", `${of}/parked/accept-loss?keys=2&reason=INC-1204`)
        assert.deepStrictEqual(shown(changed), [409, "StrandedKeysChanged"])
        assert.deepStrictEqual(handled, [])
        const accepted = yield* call("POST", `${of}/parked/accept-loss?keys=1&reason=INC-1204`)
        assert.deepStrictEqual([accepted.status, accepted.body], [200, { keys: 1 }])
        yield* untilHandled(handled, "c1")
        assert.deepStrictEqual(yield* lettersIn(memory), ["a1"])
        yield* eventually(call("GET", `${of}/parked`), ({ body: { counts } }) => counts.stranded === 0)
      })
  )

  it.live("PKO-05 a held key is listed with its record, its followers and its error", () =>
    Effect.gen(function* () {
      const { call } = yield* held()
      const { status, body } = yield* call("GET", `${of}/parked`)
      assert.strictEqual(status, 200)
      const [{ since, ...key }] = body.keys
      assert.match(since, /^\d{4}-.*Z$/)
      assert.deepStrictEqual(key, {
        ...{ position: "0@0", topic: "orders", state: "held", key: "customer-a", retryTopic: "orders.retry-1" },
        ...{ exceptionClass: "Closed", message: `no account ${canary}` },
        ...{ followers: 1, hasMoreFollowers: false, isOwnedHere: true }
      })
      assert.deepStrictEqual([body.counts, body.next], [{ held: 1, waiting: 0, draining: 0, stranded: 0 }, undefined])
    })
  )

  it.live("PKO-05 retry handles the held record and what follows it; a second one is 409 and changes nothing", () =>
    Effect.gen(function* () {
      const { call, handled, failing } = yield* held()
      failing.clear()
      const headers = { "idempotency-key": "INC-1204" }
      const retried = yield* call("POST", `${of}/parked/0@0/retry?reason=INC-1204`, { headers })
      assert.deepStrictEqual([retried.status, retried.body.by, retried.body.key.position], [200, "here", "0@0"])
      yield* untilHandled(handled, "b1", "a1", "a2")
      // The same request again gets the first answer, and another one is refused.
      const same = yield* call("POST", `${of}/parked/0@0/retry?reason=INC-1204`, { headers })
      assert.deepStrictEqual([same.status, same.body], [200, retried.body])
      const late = yield* call("POST", `${of}/parked/0@0/skip?reason=INC-1204`)
      assert.deepStrictEqual(shown(late), [409, "KeyNotHeld"])
      yield* untilHandled(handled, "b1", "a1", "a2")
    })
  )

  it.live("PKO-05 skip dead-letters the held record, and its key goes on", () =>
    Effect.gen(function* () {
      const { call, handled } = yield* held()
      const skipped = yield* call("POST", `${of}/parked/0@0/skip?reason=INC-1204&topic=orders`)
      assert.strictEqual(skipped.status, 200)
      yield* untilHandled(handled, "b1", "a2")
      const { body } = yield* eventually(call("GET", `${of}/dlt/records`), ({ body }) => body.letters.length === 1)
      assert.deepStrictEqual([body.letters[0].reason, body.letters[0].originalOffset], ["RETRIES_EXHAUSTED", "0"])
    })
  )

  it.live("PKO-05 keys come page by page, and a page of nobody is refused", () =>
    Effect.gen(function* () {
      const { call, memory, failing } = yield* held()
      failing.add("c1").add("d1")
      const bytes = (text: string) => new TextEncoder().encode(text)
      yield* memory.append(
        "orders",
        0,
        ["c1", "d1"].map((value) => ({ key: bytes(value), value: bytes(value) }))
      )
      yield* eventually(call("GET", `${of}/parked`), ({ body }) => body.counts.held === 3)
      const first = yield* call("GET", `${of}/parked?limit=2`)
      const second = yield* call("GET", `${of}/parked?limit=2&page=${first.body.next}`)
      const positions = [first, second].map(({ body }) =>
        body.keys.map(({ position }: { readonly position: string }) => position)
      )
      assert.deepStrictEqual(positions, [["0@0", "0@3"], ["0@4"]])
      assert.deepStrictEqual([second.body.next, second.body.counts.held], [undefined, 3])
      assert.deepStrictEqual(shown(yield* call("GET", `${of}/parked?page=x`)), [400, "InvalidRequest"])
      assert.deepStrictEqual(shown(yield* call("GET", `${of}/parked?limit=0`)), [400, "InvalidRequest"])
    })
  )

  it.live(
    "PKO-05 OPS-16 key and message need view-payload, a decision needs operate; the audit log has who and why",
    () =>
      Effect.gen(function* () {
        const { context, call, failing } = yield* held({ audit: {} })
        const tokenOf = (...permissions: ReadonlyArray<Authorizer.Permission>) => ({
          ...{ token: Redacted.make(permissions.join("+")), name: permissions.join("+"), permissions }
        })
        const authorizer = Authorizer.fromTokens([
          ...[tokenOf("view"), tokenOf("view", "operate"), tokenOf("view", "discard"), tokenOf("view", "view-payload")]
        ])
        const web = yield* Effect.provideContext(AdminWeb.make({ authorizer }), context)
        const as = (name: string, method: string, path: string) => callOf(web)(method, `${of}${path}`, { token: name })
        const listed = yield* as("view", "GET", "/parked")
        assert.deepStrictEqual([listed.body.keys[0].position, listed.body.keys[0].key], ["0@0", undefined])
        assert.notInclude(listed.text, canary)
        assert.include((yield* as("view+view-payload", "GET", "/parked")).text, canary)
        for (const name of ["view", "view+discard"])
          for (const verb of ["retry", "skip"])
            assert.deepStrictEqual(shown(yield* as(name, "POST", `/parked/0@0/${verb}?reason=x`)), [403, "Forbidden"])
        failing.clear()
        const decided = yield* as("view+operate", "POST", "/parked/0@0/retry?reason=INC-1204")
        assert.strictEqual(decided.status, 200)
        assert.notInclude(decided.text, "customer-a")
        const { body, text } = yield* call("GET", "/eventbus/audit")
        const entry = body.entries.find(({ action }: { readonly action: string }) => action === "retryParked")
        assert.deepInclude(entry, {
          ...{ by: "view+operate", binding: "default:orders", reason: "INC-1204", outcome: "done" },
          target: { position: "0@0" }
        })
        assert.notInclude(text, canary)
      })
  )

  it.live("PKO-05 ADM-12 a decision without a reason or a position is 400", () =>
    Effect.gen(function* () {
      const { call } = yield* held()
      for (const [path, name] of [
        ["0@0/skip", "reason"],
        ["0@0/retry?reason=%20", "reason"],
        ["0/retry?reason=x", "position"]
      ] as const) {
        const answer = yield* call("POST", `${of}/parked/${path}`)
        const paths = answer.body.issues?.map((issue: { readonly path: string }) => issue.path)
        assert.deepStrictEqual([...shown(answer), paths], [400, "InvalidRequest", [name]], path)
      }
      assert.deepStrictEqual(shown(yield* call("GET", "/eventbus/bindings/nobody/parked")), [404, "BindingNotFound"])
    })
  )

  it.live("PKO-05 from outside a decision goes to the owner of the partition", () =>
    Effect.gen(function* () {
      const { memory, connector, handled, failing } = yield* held()
      const { binding } = yield* connector.snapshot("orders")
      const outside = yield* outsideOf(binding as Binding.Binding<never>, memory.broker)
      const { keys } = yield* eventually(Effect.orDie(outside.parked("orders")), ({ counts }) => counts.held === 1)
      assert.deepStrictEqual([keys[0]?.position, keys[0]?.key, keys[0]?.isOwnedHere], ["0@0", undefined, false])
      failing.clear()
      const { by } = yield* outside.retryParked("orders", { partition: 0, offset: 0n }, "INC-1204")
      assert.strictEqual(by, "owner")
      yield* untilHandled(handled, "b1", "a1", "a2")
    })
  )
})
