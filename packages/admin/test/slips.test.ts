/** Slips of callers over HTTP: bodies, times, cursors and keys that cannot be meant are 400 with a word that helps, and nothing is done. */
import { assert, describe, it } from "@effect/vitest"
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Effect } from "effect"
import { type Answer, eventually, Refused, start } from "./api.ts"

const orders = "/eventbus/bindings/orders"
const dlt = `${orders}/dlt`
const id = "6f1c2c1e-8a55-4a44-9c53-1f9a7d3f6b20"
const everyLetter = { action: "replay", select: { all: true }, reason: "the gateway is back" }
const long = "x".repeat(10_000)

/** A program with so many dead letters. */
const withLetters = Effect.fnUntraced(function* (count: number) {
  const made = Binding.make("orders", {
    ...{ topic: "orders", groupId: "orders-group", value: Serde.string, retry: RetryPolicy.none },
    onError: { Refused: Route.deadLetter("refused") },
    handler: () => Effect.fail(new Refused()),
    transforms: { repair: () => Effect.succeed({ value: "repaired" }) }
  })
  const program = yield* start({ bindings: [made] })
  yield* program.append("orders", ...Array.from({ length: count }, () => "bad"))
  yield* eventually(program.call("GET", `${dlt}/stats`), ({ body }) => body.count === count)
  return program
})

const refused = ({ status, body }: Answer) => [status, body._tag, ...(body.issues ?? [])]

describe("requests that cannot be meant", () => {
  it.live("ADM-12 a body with 20,000 levels, or one that is no JSON, is 400 on every route that reads one", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      const deep = "[".repeat(20_000) + "]".repeat(20_000)
      const routes = [
        ...["start", "stop", "pause", "resume"].map((verb) => `${orders}/${verb}`),
        ...["plans", "rehearsals", `plans/${id}/apply`].map((path) => `${dlt}/${path}`),
        ...["pause", "cancel", "resume", "rate"].map((verb) => `${dlt}/runs/${id}/${verb}`),
        ...["plans", "plans/none/apply", "runs/none/cancel"].map((path) => `/eventbus/outbox/dead/${path}`)
      ]
      const allowed = "JSON of at most 64 levels"
      for (const route of routes) {
        for (const text of [deep, `{"reason":${deep}}`]) {
          const found = "nesting exceeded maxDepth (64)"
          const issue = { path: "", found, allowed }
          assert.deepStrictEqual(refused(yield* call("POST", route, { text })), [400, "InvalidRequest", issue], route)
        }
        const cut = { path: "", found: "something that is not JSON", allowed: "JSON (RFC 8259)" }
        const answer = yield* call("POST", route, { text: '{"reason":' })
        assert.deepStrictEqual(refused(answer), [400, "InvalidRequest", cut], route)
      }
      const nothing = yield* call("POST", `${dlt}/runs/${id}/cancel`, { text: "" })
      assert.strictEqual(nothing.body.issues[0].found, "nothing")
      const { status } = yield* call("POST", `${orders}/pause`, { body: { reason: "the gateway is down" } })
      assert.strictEqual(status, 200)
    })
  )

  it.live("ADM-12 a body where the route takes none is 400 with its path, and nothing is done", () =>
    Effect.gen(function* () {
      const { call, memory } = yield* withLetters(2)
      const before = (yield* memory.log("orders", 0)).length
      const routes = [
        ["DELETE", orders],
        ["DELETE", `${dlt}?olderThan=1d`],
        ["POST", `${dlt}/replay?count=1`],
        ["POST", `${dlt}/replay-to-tier?tier=1&count=1`],
        ["POST", `${orders}/held/0@0/skip?reason=x`],
        ["POST", `${orders}/held/0@0/dead-letter?reason=x`],
        ["POST", `${dlt}/plans/${id}/apply`],
        ["POST", `${dlt}/runs/${id}/resume`],
        ["POST", "/eventbus/outbox/dead/events/e-0/replay?reason=x"],
        ["POST", "/eventbus/outbox/dead/events/e-0/discard?reason=x"],
        ["POST", "/eventbus/outbox/dead/plans/none/apply"]
      ] as const
      for (const [method, path] of routes) {
        const unknown = yield* call(method, path, { body: { count: 1, group: "v1-a" } })
        assert.deepStrictEqual([unknown.status, unknown.body._tag], [400, "InvalidRequest"], path)
        const paths: ReadonlyArray<{ readonly path: string }> = unknown.body.issues
        assert.deepStrictEqual(paths.map(({ path: key }) => key).sort(), ["count", "group"], path)
        const list = yield* call(method, path, { body: [1] })
        assert.deepStrictEqual([list.status, list.body.issues[0].path], [400, ""], path)
      }
      const form = { text: "count=5", headers: { "content-type": "application/x-www-form-urlencoded" } }
      const [status, , issue] = refused(yield* call("POST", `${dlt}/replay?count=1`, form))
      const found = "something that is not JSON"
      assert.deepStrictEqual([status, issue], [400, { path: "", found, allowed: "no body, or an empty object" }])
      const large = yield* call("POST", `${dlt}/replay?count=1`, { text: " ".repeat(2 ** 20 + 1) })
      assert.deepStrictEqual([large.status, large.body.issues[0].path], [400, ""])
      assert.strictEqual((yield* memory.log("orders", 0)).length, before)
      const nobody = yield* call("POST", `${dlt}/replay?count=1`, { token: "none", body: { count: 1 } })
      assert.strictEqual(nobody.status, 401)
      const empty = [{ body: {} }, { ...form, text: "" }]
      for (const body of empty) assert.strictEqual((yield* call("POST", `${dlt}/replay?count=1`, body)).status, 200)
    })
  )

  it.live(
    "ADM-11 a purge up to a time in the future, or to a number without its unit, is 400 and deletes nothing",
    () =>
      Effect.gen(function* () {
        const { call, memory } = yield* withLetters(2)
        const later = new Date(Date.now() + 3_600_000)
        for (const older of [later.toISOString(), String(later.getTime()), "7", "0", "-1", "946684799999"]) {
          const answer = yield* call("DELETE", `${dlt}?olderThan=${older}`)
          const [status, tag, issue] = refused(answer)
          assert.deepStrictEqual([status, tag, issue.path], [400, "InvalidRequest", "olderThan"], older)
          assert.match(issue.allowed, /^a time that is not in the future .* from 2000 on/)
        }
        assert.strictEqual((yield* memory.log("orders.DLT", 0)).length, 2)
        const since2000 = yield* call("DELETE", `${dlt}?olderThan=946684800000`)
        assert.deepStrictEqual([since2000.status, since2000.body], [200, { purged: 0 }])
      })
  )

  it.live("OPS-03 a cursor that no page of this topic has given is 400", () =>
    Effect.gen(function* () {
      const { call } = yield* withLetters(3)
      const { body } = yield* call("GET", `${dlt}/records?limit=1`)
      for (const before of [`${body.next}.0`, "4", "99.99"]) {
        const answer = yield* call("GET", `${dlt}/records?before=${before}`)
        assert.deepStrictEqual([answer.status, answer.body.expected], [400, "'next' of the page before"], before)
      }
      assert.strictEqual((yield* call("GET", `${dlt}/records?before=${body.next}`)).body.letters.length, 2)
    })
  )

  it.live("OPS-05 a rehearsal with a transform that the binding lacks is refused at once", () =>
    Effect.gen(function* () {
      const { call } = yield* withLetters(1)
      const rehearse = (transform: string) =>
        call("POST", `${dlt}/rehearsals`, { body: { select: { all: true }, transform } })
      const { status, body } = yield* rehearse("repiar")
      assert.deepStrictEqual(
        [status, body._tag, body.argument, body.given, body.expected],
        [400, "InvalidArgument", "transform", "repiar", "repair"]
      )
      assert.strictEqual((yield* rehearse("repair")).status, 202)
    })
  )

  it.live("OPS-06 a sample of more than 20 letters is 400, and a plan without a transform says that it has none", () =>
    Effect.gen(function* () {
      const { call } = yield* withLetters(1)
      const plan = (yield* call("POST", `${dlt}/plans`, { body: everyLetter })).body.id
      const issue = { path: "count", found: "99", allowed: "a whole number, 1 to 20" }
      const many = yield* call("GET", `${dlt}/plans/${plan}/sample?count=99`)
      assert.deepStrictEqual(refused(many), [400, "InvalidRequest", issue])
      const { status, body } = yield* call("GET", `${dlt}/plans/${plan}/sample?count=20`)
      assert.deepStrictEqual([status, body.letters], [200, []])
      assert.match(body.note, /^The plan has no transform/)
    })
  )

  it.live("a method that a page or a probe does not take is 405 with those that it takes", () =>
    Effect.gen(function* () {
      const { call } = yield* start({ metrics: Effect.succeed("up 1") })
      const pages = ["/eventbus/console", "/eventbus/openapi.json", "/health/live", "/health/ready", "/metrics"]
      for (const page of pages) {
        const answer = yield* call("POST", page)
        assert.deepStrictEqual(
          [answer.status, answer.body._tag, answer.headers.get("allow")],
          [405, "MethodNotAllowed", "GET"],
          page
        )
        assert.notInclude([404, 405], (yield* call("GET", page)).status, page)
      }
      const { call: plain } = yield* start({ console: false })
      for (const page of ["/eventbus/console", "/metrics"])
        assert.strictEqual((yield* plain("POST", page)).status, 404, page)
    })
  )

  it.live(
    "OPS-18 two idempotency keys of one request are 400, as HTTP joins them; in quotes, one key has a comma",
    () =>
      Effect.gen(function* () {
        const { call } = yield* start()
        const pause = (key: string) => call("POST", `${orders}/pause`, { headers: { "idempotency-key": key } })
        for (const two of ["one, two", '"one", "two"', '"one\\", two', 'one, "two"']) {
          const answer = yield* pause(two)
          assert.deepStrictEqual(refused(answer).slice(0, 2), [400, "InvalidRequest"], two)
          const found = `a text of ${two.length} characters`
          assert.deepInclude(answer.body.issues[0], { path: "Idempotency-Key", found })
        }
        assert.strictEqual((yield* call("GET", orders)).body.state, "RUNNING")
        const key = '"INC-1204, orders of \\"ann\\""'
        assert.strictEqual((yield* pause(key)).status, 200)
        const repeated = yield* pause(key)
        assert.deepStrictEqual([repeated.status, repeated.headers.get("idempotency-replayed")], [200, "true"])
      })
  )

  it.live("an issue says the length of a long value and does not repeat it", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      const length = "a text of 10000 characters"
      const reason = yield* call("POST", `${orders}/pause`, { body: { reason: long } })
      assert.deepStrictEqual([reason.status, reason.body.issues[0].found], [400, length])
      const text = yield* call("GET", `${dlt}/records?text=${long}`)
      assert.deepStrictEqual([text.status, text.body.issues[0].found], [400, length])
      const list = yield* call("POST", `${orders}/pause`, { body: { reason: [long] } })
      assert.deepStrictEqual([list.status, list.body.issues[0].found], [400, "JSON of 10004 characters"])
      const plan = yield* call("GET", `${dlt}/plans/${long.slice(0, 1_000)}`)
      assert.deepStrictEqual([plan.status, plan.body.given], [400, "a text of 1000 characters"])
    })
  )
})
