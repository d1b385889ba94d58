/** OPS-03 and OPS-05 over HTTP: groups, pages, one dead letter, rehearsals; payloads only for callers who may see them. */
import { assert, describe, it } from "@effect/vitest"
import { AdminWeb, Authorizer } from "@eventbus/admin"
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Effect, Layer, Logger, Redacted, Schema } from "effect"
import { type Answer, binding, callOf, eventually, Refused, start, token } from "./api.ts"

const shown = ({ status, body }: Answer) => [status, body._tag]
const dlt = "/eventbus/bindings/orders/dlt"

/** A program with these values dead-lettered: each has the group of its error. */
const withLetters = Effect.fnUntraced(function* (
  values: ReadonlyArray<string>,
  made: Binding.Binding<never> = binding("orders")
) {
  const program = yield* start({ bindings: [made] })
  yield* program.append("orders", ...values)
  yield* eventually(program.call("GET", `${dlt}/stats`), ({ body }) => body.count === values.length)
  return program
})

/** A rehearsal, begun and ended. */
const rehearsed = Effect.fnUntraced(function* (
  call: Effect.Success<ReturnType<typeof start>>["call"],
  select: unknown
) {
  const begun = yield* call("POST", `${dlt}/rehearsals`, { body: { select } })
  assert.deepStrictEqual([begun.status, begun.body.status], [202, "running"])
  const found = yield* eventually(
    call("GET", `${dlt}/rehearsals/${begun.body.id}`),
    ({ body }) => body.status !== "running"
  )
  return found.body
})

describe("dead letters over HTTP", () => {
  it.live("OPS-03 GET dlt/groups groups dead letters, with figures and samples", () =>
    Effect.gen(function* () {
      const { call } = yield* withLetters(["bad", "bad"])
      const { status, body } = yield* call("GET", `${dlt}/groups?state=waiting,failed`)
      assert.strictEqual(status, 200)
      const [group] = body.groups
      assert.deepStrictEqual(
        [body.groups.length, group.exceptionClass, group.count, group.states, group.samples, group.originalTopic],
        [...[1, "Refused", 2, { waiting: 2, exhausted: 0, failed: 0, dealtWith: 0 }], ...[["0@1", "0@0"], "orders"]]
      )
      assert.strictEqual(group.trend.length, 24)
      assert.strictEqual(group.trend[23], 2)
      assert.match(group.first, /^\d{4}-.*Z$/)
      const ofGroup = yield* call("GET", `${dlt}/records?group=${group.fingerprint}`)
      assert.strictEqual(ofGroup.body.letters.length, 2)
    })
  )

  it.live("OPS-03 GET dlt/records pages from the newest on, and GET dlt/records/{position} shows one", () =>
    Effect.gen(function* () {
      const { call } = yield* withLetters(["bad", "bad", "bad"])
      const positions = ({ body }: Answer) =>
        body.letters.map(({ position }: { readonly position: string }) => position)
      const first = yield* call("GET", `${dlt}/records?limit=2`)
      assert.deepStrictEqual(positions(first), ["0@2", "0@1"])
      const second = yield* call("GET", `${dlt}/records?limit=2&before=${first.body.next}`)
      assert.deepStrictEqual([positions(second), second.body.next], [["0@0"], undefined])
      const { body } = yield* call("GET", `${dlt}/records/0@1`)
      assert.deepStrictEqual(
        [body.position, body.state, body.exceptionClass, body.originalOffset, body.decodable, body.valueBytes],
        ["0@1", "waiting", "Refused", "1", true, 3]
      )
      assert.deepStrictEqual(body.payload.value, { bytes: 3, text: "bad", decoded: "bad" })
      assert.deepStrictEqual(shown(yield* call("GET", `${dlt}/records/0@99`)), [404, "DeadLetterNotFound"])
      assert.deepStrictEqual(shown(yield* call("GET", `${dlt}/records/9@0`)), [404, "DeadLetterNotFound"])
    })
  )

  it.live(
    "OPS-03 DLT-22 a letter of Spring's has its deliveries, its numbers in decimals, and the bytes of a value that Spring could not read",
    () =>
      Effect.gen(function* () {
        const { call, memory } = yield* withLetters(["bad"])
        const text = (key: string, value: string) => ({ key, value: new TextEncoder().encode(value) })
        const number = (key: string, ...bytes: ReadonlyArray<number>) => ({ key, value: Uint8Array.from(bytes) })
        const fatal = "org.springframework.kafka.support.serializer.DeserializationException"
        const headers = [
          ...[text("kafka_exception-fqcn", fatal), text("kafka_original-topic", "orders"), text("__TypeId__", "[B")],
          number("kafka_original-partition", 0, 0, 0, 0),
          number("kafka_original-offset", 0, 0, 0, 0, 0, 0, 1, 0),
          number("retry_topic-attempts", 0, 0, 0, 3)
        ]
        yield* memory.append("orders.DLT", 0, [{ ...text("", '"eyBicm9rZW4="'), key: null, headers }])
        const { body } = yield* call("GET", `${dlt}/records/0@1`)
        assert.deepStrictEqual([body.totalAttempts, body.originalOffset, body.exceptionClass], [2, "256", fatal])
        assert.deepStrictEqual(body.payload.value, { bytes: 8, text: "{ broken", decoded: "{ broken" })
        assert.deepStrictEqual(
          body.payload.headers.map(({ name, value }: { readonly name: string; readonly value: string }) => [
            name,
            value
          ]),
          [
            ...[
              ["kafka_exception-fqcn", fatal],
              ["kafka_original-topic", "orders"],
              ["kafka_original-partition", "0"]
            ],
            ...[
              ["kafka_original-offset", "256"],
              ["retry_topic-attempts", "3"]
            ]
          ]
        )
      })
  )

  it.live("OPS-05 a rehearsal is begun, asked for, and says what today's code would do", () =>
    Effect.gen(function* () {
      let isBad = true
      const handler = Effect.suspend(() => (isBad ? Effect.fail(new Refused()) : Effect.void))
      const made = Binding.make("orders", {
        ...{ topic: "orders", groupId: "orders-group", value: Serde.string, retry: RetryPolicy.none },
        onError: { Refused: Route.deadLetter("refused") },
        handler: () => handler
      })
      const { call } = yield* withLetters(["one", "two"], Binding.rehearsable(made, Layer.empty))
      const failing = yield* rehearsed(call, { all: true })
      assert.deepStrictEqual(
        [failing.status, failing.report.mode, failing.report.selected, failing.report.fails],
        ["done", "handler", 2, 2]
      )
      assert.deepStrictEqual(failing.report.groups[0].failures, [
        { exceptionClass: "Refused", route: "dead letter topic (refused)", count: 2, message: "" }
      ])
      isBad = false
      const passing = yield* rehearsed(call, { records: ["0@1"] })
      assert.deepStrictEqual([passing.report.selected, passing.report.passes], [1, 1])
      assert.deepStrictEqual(passing.report.letters[0].position, "0@1")
    })
  )

  it.live("OPS-05 one rehearsal of a binding runs at a time, and a binding without a layer is decoded", () =>
    Effect.gen(function* () {
      const { call } = yield* withLetters(["bad"])
      const decoded = yield* rehearsed(call, { all: true })
      assert.deepStrictEqual([decoded.report.mode, decoded.report.decodes], ["decode", 1])

      const made = Binding.make("orders", {
        ...{ topic: "orders", groupId: "orders-group", value: Serde.string, retry: RetryPolicy.none },
        handler: ({ value }) => (value === "hangs" ? Effect.never : Effect.die(new Error(value)))
      })
      const slow = yield* withLetters(["bad"], Binding.rehearsable(made, Layer.empty))
      yield* slow.memory.append("orders.DLT", 0, [{ key: null, value: new TextEncoder().encode("hangs") }])
      const first = yield* slow.call("POST", `${dlt}/rehearsals`, { body: { select: { all: true } } })
      const second = yield* slow.call("POST", `${dlt}/rehearsals`, { body: { select: { all: true } } })
      assert.deepStrictEqual([...shown(second), second.body.id], [409, "RehearsalRunning", first.body.id])
    })
  )

  it.live("OPS-05 ADM-12 a selection is refused with every issue and its path", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      const refused = (body: unknown) =>
        Effect.map(call("POST", `${dlt}/rehearsals`, { body }), (answer) => [
          ...shown(answer),
          ...answer.body.issues.map(({ path }: { readonly path: string }) => path)
        ])
      const invalid = (...paths: ReadonlyArray<string>) => [400, "InvalidRequest", ...paths]
      assert.deepStrictEqual(yield* refused({}), invalid("select"))
      assert.deepStrictEqual(yield* refused([]), invalid(""))
      assert.deepStrictEqual(yield* refused({ select: {} }), invalid("select"))
      assert.deepStrictEqual(yield* refused({ select: { all: true }, limit: 1 }), invalid("limit"))
      assert.deepStrictEqual(yield* refused({ select: { fingerprints: ["v1-a"] } }), invalid("select.fingerprints"))
      const all = {
        ...{ groups: ["x"], from: "yesterday", to: null, keys: [7], records: ["0@1", "x", { partition: 0 }] },
        ...{ all: "yes", except: "0@1", goups: [] }
      }
      assert.deepStrictEqual(
        yield* refused({ select: all }),
        invalid(
          ...["select.goups", "select.groups[0]", "select.from", "select.to", "select.keys[0]"],
          ...["select.records[1]", "select.records[2]", "select.all", "select.except"]
        )
      )
      const window = yield* call("POST", `${dlt}/rehearsals`, {
        body: { select: { from: "2026-03-01T00:00:00Z", to: "2026-02-01T00:00:00Z" } }
      })
      assert.deepStrictEqual(window.body.issues[0].path, "select.to")
      const text = yield* call("POST", `${dlt}/rehearsals`, { text: "{" })
      assert.deepStrictEqual(shown(text), [400, "InvalidRequest"])
    })
  )

  it.live("OPS-03 ADM-12 wrong states, positions and ids are refused with their path", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      const paths = ({ body }: Answer) => body.issues.map(({ path }: { readonly path: string }) => path)
      for (const [path, name] of [
        ["groups?state=foreign", "state"],
        ["groups?state=open", "state"],
        ["records?limit=501", "limit"],
        ["records?group=x", "group"],
        ["records?before=x", "before"],
        ["records?text=", "text"],
        ["records/3", "position"],
        ["records/3@-1", "position"]
      ] as const) {
        const answer = yield* call("GET", `${dlt}/${path}`)
        assert.deepStrictEqual([...shown(answer), paths(answer)], [400, "InvalidRequest", [name]], path)
      }
      assert.deepStrictEqual(shown(yield* call("GET", `${dlt}/rehearsals/nothing`)), [404, "RehearsalNotFound"])
    })
  )
})

describe("payloads over HTTP", () => {
  const canary = "canary-4111-of-anna"

  class Declined extends Schema.TaggedError<Declined>()("Declined", {}) {
    override get message(): string {
      return `no money on ${canary}`
    }
  }

  const leaking = Binding.rehearsable(
    Binding.make("orders", {
      ...{ topic: "orders", groupId: "orders-group", value: Serde.string, retry: RetryPolicy.none },
      onError: { Declined: Route.deadLetter(canary) },
      handler: () => Effect.fail(new Declined())
    }),
    Layer.empty
  )

  it.live(
    "OPS-16 no answer has key, value, header or message without view-payload, and no text is looked for in them",
    () =>
      Effect.gen(function* () {
        const { context } = yield* withLetters([canary], leaking)
        const lines: Array<string> = []
        const logger = Logger.make(({ message }) => void lines.push(String(message)))
        const authorizer = Authorizer.fromTokens([
          { token: Redacted.make(token), name: "viewer", permissions: ["view", "replay"] },
          { token: Redacted.make("all"), name: "auditor", permissions: ["view", "view-payload"] }
        ])
        const web = yield* AdminWeb.make({ authorizer }).pipe(
          Effect.provideContext(context),
          Effect.provide(Logger.layer([logger]))
        )
        const call = callOf(web)
        const begun = yield* call("POST", `${dlt}/rehearsals`, { body: { select: { all: true } } })
        const rehearsal = `rehearsals/${begun.body.id}`
        yield* eventually(call("GET", `${dlt}/${rehearsal}`), ({ body }) => body.status === "done")
        const paths = ["groups", "records", "records/0@0", rehearsal]
        lines.length = 0
        for (const path of paths) {
          const hidden = yield* call("GET", `${dlt}/${path}`)
          assert.strictEqual(hidden.status, 200)
          assert.notInclude(hidden.text, canary, path)
        }
        assert.deepStrictEqual(lines, [])
        const search = `records?text=${canary}`
        assert.deepStrictEqual((yield* call("GET", `${dlt}/${search}`)).body.letters, [])
        for (const path of ["records", "records/0@0", rehearsal]) {
          assert.include((yield* call("GET", `${dlt}/${path}`, { token: "all" })).text, canary, path)
        }
        assert.strictEqual((yield* call("GET", `${dlt}/${search}`, { token: "all" })).body.letters.length, 1)
        assert.include(lines, "Admin API: record of binding 'default:orders', with payload, by auditor: done")
        assert.strictEqual(lines.filter((line) => line.includes("with payload")).length, 4)
      })
  )

  it.live("OPS-16 callers on this machine see no payload while there is no authorizer", () =>
    Effect.gen(function* () {
      const { context } = yield* withLetters([canary], leaking)
      const web = yield* Effect.provideContext(AdminWeb.make(), context)
      const local = { remoteAddress: "127.0.0.1", token: "", headers: { host: "localhost" } }
      const answer = yield* callOf(web)("GET", `${dlt}/records/0@0`, local)
      assert.strictEqual(answer.status, 200)
      assert.notInclude(answer.text, canary)
      assert.isUndefined(answer.body.payload)
    })
  )
})
