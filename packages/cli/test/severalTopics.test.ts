/** RCH-11: the dead letters of a binding of two topics, over HTTP and by the commands that ask a process. */
import { assert, it } from "@effect/vitest"
import { AdminWeb } from "@eventbus/admin"
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Effect } from "effect"
import { eventually, everything, Refused, start, token } from "../../admin/test/api.ts"
import { withToken } from "./eventbus.ts"
import { served } from "./served.ts"

const topics = ["orders", "payments"] as const
const api = "/eventbus/bindings/ledger"

/** Two topics with a dead letter each: `bad orders`, `bad payments`. */
const withLetters = Effect.gen(function* () {
  let isBad = true
  const made = Binding.make("ledger", {
    ...{ topic: topics, groupId: "ledger-group", value: Serde.string, retry: RetryPolicy.none },
    onError: { Refused: Route.deadLetter("refused") },
    handler: () => Effect.suspend(() => (isBad ? Effect.fail(new Refused()) : Effect.void))
  })
  const program = yield* start({ bindings: [made] })
  for (const topic of topics) yield* program.append(topic, `bad ${topic}`)
  yield* eventually(program.call("GET", `${api}/dlt/stats`), ({ body }) => body.count === 2)
  const url = yield* served(
    yield* AdminWeb.make({ authorizer: everything }).pipe(Effect.provideContext(program.context))
  )
  const dlt = (command: string, ...args: ReadonlyArray<string>) =>
    withToken(token, "dlt", command, "ledger", ...args, "--url", url)
  const heal = Effect.sync(() => {
    isBad = false
  })
  return { ...program, dlt, heal }
})

const sourcesOf = (entries: ReadonlyArray<{ readonly sourceTopic?: string }>) =>
  entries.map(({ sourceTopic }) => sourceTopic).toSorted()

it.live("RCH-11 the admin API shows the letters of both topics, and one topic by its parameter", () =>
  Effect.gen(function* () {
    const { call } = yield* withLetters
    const { body: binding } = yield* call("GET", api)
    assert.deepStrictEqual([binding.topic, binding.topics], ["orders", [...topics]])
    const { body: page } = yield* call("GET", `${api}/dlt/records`)
    assert.deepStrictEqual(sourcesOf(page.letters), [...topics])
    const { body: found } = yield* call("GET", `${api}/dlt/groups`)
    assert.deepStrictEqual(sourcesOf(found.groups), [...topics])
    const { body: payments } = yield* call("GET", `${api}/dlt/records?topic=payments`)
    assert.deepStrictEqual(sourcesOf(payments.letters), ["payments"])
    const { body: letter } = yield* call("GET", `${api}/dlt/records/0@0?topic=payments`)
    assert.deepStrictEqual([letter.originalTopic, letter.payload.value.text], ["payments", "bad payments"])
    assert.strictEqual((yield* call("GET", `${api}/dlt/stats?topic=orders`)).body.count, 1)
  })
)

it.live("RCH-11 a request that has to know the topic is 400, names the topics, and does nothing", () =>
  Effect.gen(function* () {
    const { call } = yield* withLetters
    const select = { select: { all: true } }
    const requests = [
      call("GET", `${api}/dlt/records/0@0`),
      call("POST", `${api}/dlt/replay?count=1`),
      call("POST", `${api}/dlt/rehearsals`, { body: select }),
      call("POST", `${api}/dlt/plans`, { body: { ...select, action: "replay", reason: "why" } }),
      call("DELETE", `${api}/dlt?olderThan=1ms`),
      call("GET", `${api}/dlt/records?topic=refunds`)
    ]
    for (const request of requests) {
      const { status, body } = yield* request
      assert.deepStrictEqual([status, body._tag, body.argument], [400, "InvalidArgument", "topic"])
      assert.strictEqual(body.expected, "a topic that the binding reads: orders, payments")
    }
    assert.strictEqual((yield* call("GET", `${api}/dlt/stats`)).body.count, 2)
  })
)

it.live("RCH-11 the commands list both topics, and replay one; the other one's letters stay", () =>
  Effect.gen(function* () {
    const { dlt, heal, call } = yield* withLetters
    const listed = yield* dlt("list")
    assert.deepStrictEqual([listed.code, listed.err], [0, ""])
    assert.match(listed.out, /^payments {2}0@0 {2}waiting/m)
    assert.match(listed.out, /^orders {4}0@0 {2}waiting/m)
    assert.match((yield* dlt("groups")).out, /^2 groups, 2 dead letters to deal with\n(?:orders|payments) +v1-/)
    const shown = yield* dlt("show", "0@0", "--topic", "payments")
    assert.match(shown.out, /came from +payments-0@0/)
    const refused = yield* dlt("run", "--all", "--reason", "why")
    assert.strictEqual(refused.code, 2)
    assert.include(refused.err, "expected a topic that the binding reads: orders, payments. Nothing was done.")
    yield* heal
    const ran = yield* dlt("run", "--all", "--reason", "why", "--canary", "0", "--topic", "payments")
    assert.strictEqual(ran.code, 0, ran.err)
    const [run] = JSON.parse((yield* dlt("runs", "--json")).out).runs
    assert.strictEqual((yield* dlt("receipt", run.id)).code, 0)
    yield* eventually(call("GET", `${api}/dlt/stats?topic=payments`), ({ body }) => body.count === 0)
    assert.strictEqual((yield* call("GET", `${api}/dlt/stats?topic=orders`)).body.count, 1)
  })
)
