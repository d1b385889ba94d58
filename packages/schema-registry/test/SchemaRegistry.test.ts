import { assert, describe, it } from "@effect/vitest"
import { SchemaRegistry } from "@eventbus/schema-registry"
import { Effect, Fiber, Layer, Logger, Redacted } from "effect"
import { HttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import { layer, TestRegistry } from "./registry.ts"

const text = { type: "string" } as const

const byId = (id: number) => SchemaRegistry.SchemaRegistry.use((registry) => registry.byId(id))

/** Virtual time goes on until the effect has ended. */
const after = Effect.fnUntraced(function* (duration: string) {
  yield* TestClock.adjust(duration as "1 second")
  yield* Effect.repeat(Effect.yieldNow, { times: 50 })
})

describe("the schema registry", () => {
  it.effect("SER-06 a schema is fetched once, and concurrent readers share the request", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      server.byId.set(7, { schema: text })
      const both = yield* Effect.all([byId(7), byId(7)], { concurrency: 2 })
      assert.deepStrictEqual(both[0], { id: 7, type: "AVRO", schema: JSON.stringify(text), references: [] })
      yield* byId(7)
      assert.deepStrictEqual(server.requests, ["GET http://registry:8081/schemas/ids/7"])
    }).pipe(Effect.provide(layer()))
  )

  it.effect(
    "SER-06 the client waits out an outage, 100 ms doubling up to 10 s; the log has each reason once, and the end",
    () => {
      const lines: Array<string> = []
      const logger = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
      return Effect.gen(function* () {
        const server = yield* TestRegistry
        server.byId.set(7, { schema: text })
        server.instead = { status: 503, text: "" }
        const waiting = yield* Effect.forkChild(byId(7), { startImmediately: true })
        const counts: Array<number> = []
        for (const wait of ["99 millis", "1 millis", "200 millis", "400 millis", "12 seconds", "1 minute"]) {
          yield* after(wait)
          counts.push(server.requests.length)
        }
        // 0, 100, 300, 700, 1500, 3100, 6300, 12700, then each 10 s.
        assert.deepStrictEqual(counts, [1, 2, 3, 4, 8, 14])
        server.instead = { status: 401, text: '{"error_code":401,"message":"who?"}' }
        yield* after("10 seconds")
        server.instead = undefined
        yield* after("10 seconds")
        assert.strictEqual((yield* Fiber.join(waiting)).id, 7)
        assert.deepStrictEqual(lines, [
          "The schema registry does not return schema 7; the request is repeated: it answers with status 503",
          "The schema registry does not return schema 7; the request is repeated: it answers with status 401, code 401: who?",
          "The schema registry answers again"
        ])
      }).pipe(Effect.provide(Layer.merge(layer(), logger)))
    }
  )

  it.effect.each([
    ["a page that is not there", { status: 404, text: "<html>no such page</html>" }],
    ["a path that is not there", { status: 404, text: '{"error_code":404,"message":"HTTP 404 Not Found"}' }],
    ["a login page", { status: 200, text: "<html>who are you?</html>" }],
    ["JSON that is no schema", { status: 200, text: '{"schema":7}' }],
    ["a redirect", { status: 302, text: "" }],
    ["refused credentials", { status: 401, text: '{"error_code":401,"message":"who?"}' }],
    ["an answer that is cut", { status: 200, text: '{"schema":"' }],
    ["too many requests", { status: 429, text: "" }]
  ] as const)("SER-06 %s does not decide about the schema: the client asks again", ([, instead]) =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      server.byId.set(7, { schema: text })
      server.instead = instead
      const waiting = yield* Effect.forkChild(byId(7), { startImmediately: true })
      yield* after("1 minute")
      assert.isUndefined(waiting.pollUnsafe())
      server.instead = undefined
      yield* after("10 seconds")
      assert.strictEqual((yield* Fiber.join(waiting)).id, 7)
    }).pipe(Effect.provide(layer()))
  )

  it.effect("SER-06 a request without an answer ends at the request timeout, and the next address is tried", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      server.byId.set(7, { schema: text })
      server.instead = "silent"
      const waiting = yield* Effect.forkChild(byId(7), { startImmediately: true })
      yield* after("2 seconds")
      server.instead = undefined
      yield* after("100 millis")
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(server.requests, ["GET http://a:1/schemas/ids/7", "GET https://b/x/schemas/ids/7"])
    }).pipe(Effect.provide(layer({ url: "http://a:1, https://b/x/", requestTimeout: "2 seconds" })))
  )

  it.effect("SER-06 requests stop when no reader waits", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      server.instead = { status: 500, text: "" }
      const waiting = yield* Effect.forEach([1, 2], () => Effect.forkChild(byId(7), { startImmediately: true }))
      yield* Fiber.interrupt(waiting[0]!)
      yield* after("1 second")
      assert.isAbove(server.requests.length, 3)
      yield* Fiber.interrupt(waiting[1]!)
      const before = server.requests.length
      yield* after("1 hour")
      assert.strictEqual(server.requests.length, before)
    }).pipe(Effect.provide(layer()))
  )

  it.effect("SER-06 an unknown id is refused, and asked for again after 30 s: it may be registered late", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      const error = yield* Effect.flip(byId(7))
      assert.strictEqual(
        error.message,
        "schema 7 cannot be used: the schema registry answers with status 404, code 40403: no"
      )
      assert.strictEqual((yield* Effect.flip(byId(7))).message, error.message)
      assert.strictEqual(server.requests.length, 1)
      server.byId.set(7, { schema: text })
      yield* after("30 seconds")
      assert.strictEqual((yield* byId(7)).id, 7)
    }).pipe(Effect.provide(layer()))
  )

  it.effect("SER-06 schemas that a schema refers to are fetched with it, each once, dependencies first", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      const refersTo = (...subjects: ReadonlyArray<string>) =>
        subjects.map((subject) => ({ name: subject, subject, version: 2 }))
      server.byId.set(7, { schema: "order", references: refersTo("address", "city") })
      server.versions.set("address/2", { schema: "address", references: refersTo("city") })
      server.versions.set("city/2", { schema: "city" })
      assert.deepStrictEqual((yield* byId(7)).references, [
        { name: "city", schema: "city" },
        { name: "address", schema: "address" }
      ])
      assert.strictEqual(server.requests.length, 3)
      server.byId.set(8, { schema: "order", references: refersTo("gone") })
      const error = yield* Effect.flip(byId(8))
      assert.include(error.message, "version 2 of subject gone cannot be used")
      server.byId.set(9, { schema: "message Order {}", schemaType: "PROTOBUF" })
      assert.strictEqual((yield* byId(9)).type, "PROTOBUF")
    }).pipe(Effect.provide(layer()))
  )

  const request = { subject: "orders-value", schema: JSON.stringify(text), register: true }

  it.effect(
    "RCH-10 two processes that register one schema at once get one id, and wait for a registry that is away",
    () =>
      Effect.gen(function* () {
        const server = yield* TestRegistry
        const client = yield* HttpClient.HttpClient
        const other = yield* SchemaRegistry.make({ url: "http://registry:8081" }).pipe(
          Effect.provideService(HttpClient.HttpClient, client)
        )
        server.instead = { status: 503, text: "" }
        const one = yield* SchemaRegistry.SchemaRegistry
        const both = yield* Effect.all([one.idOf(request), other.idOf(request)], { concurrency: 2 }).pipe(
          Effect.forkChild({ startImmediately: true })
        )
        yield* after("1 hour")
        assert.isUndefined(both.pollUnsafe())
        server.instead = undefined
        yield* after("10 seconds")
        assert.deepStrictEqual(yield* Fiber.join(both), [1, 1])
        assert.strictEqual(server.versions.size, 1)
        assert.strictEqual(yield* one.versionOf(request), 1)
      }).pipe(Effect.provide(layer()))
  )

  it.effect(
    "RCH-10 compatibility: a subject without schemas has no problem, a latest one decides, and a refused one is not registered",
    () =>
      Effect.gen(function* () {
        const server = yield* TestRegistry
        const registry = yield* SchemaRegistry.SchemaRegistry
        assert.deepStrictEqual(yield* registry.incompatibilities(request), [])
        yield* registry.idOf({ ...request, checkCompatibility: true })
        server.incompatible = ["TYPE_MISMATCH at /", "MISSING_UNION_BRANCH at /1"]
        const changed = { ...request, schema: '"int"' }
        assert.deepStrictEqual(yield* registry.incompatibilities(changed), server.incompatible)
        const error = yield* Effect.flip(registry.idOf({ ...changed, checkCompatibility: true }))
        assert.include(error.message, "TYPE_MISMATCH at /; MISSING_UNION_BRANCH at /1")
        assert.strictEqual(server.versions.size, 1)
        server.instead = { status: 422, text: '{"error_code":42201,"message":"no schema"}' }
        assert.include((yield* Effect.flip(registry.incompatibilities(changed))).message, "code 42201: no schema")
      }).pipe(Effect.provide(layer()))
  )

  it.effect("RCH-10 a schema that is known stays known when the registry loses it", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      server.byId.set(7, { schema: text })
      yield* byId(7)
      server.byId.clear()
      assert.strictEqual((yield* byId(7)).id, 7)
      assert.strictEqual(server.requests.length, 1)
    }).pipe(Effect.provide(layer()))
  )

  const secret = "geheim:%2F"
  const basic = `Basic ${btoa(`ann:${secret}`)}`
  it.effect.each([
    [{ url: `http://ann:${encodeURIComponent(secret)}@registry:8081` }, basic],
    [{ username: "ann", password: Redacted.make(secret) }, basic],
    [{ token: Redacted.make("geheim") }, "Bearer geheim"]
  ] as const)("SEC-01 SER-06 credentials appear only in the header (%#)", ([options, header]) => {
    const lines: Array<string> = []
    const logger = Logger.layer([Logger.map(Logger.formatJson, (line) => void lines.push(line))])
    return Effect.gen(function* () {
      const server = yield* TestRegistry
      server.instead = { status: 403, text: "" }
      const waiting = yield* Effect.forkChild(byId(7), { startImmediately: true })
      yield* after("1 second")
      yield* Fiber.interrupt(waiting)
      assert.strictEqual(server.requests[0], `GET http://registry:8081/schemas/ids/7 ${header}`)
      assert.strictEqual(lines.length, 1)
      assert.notInclude(lines.join(), "geheim")
    }).pipe(Effect.provide(Layer.merge(layer(options), logger)))
  })

  it.effect.each(["registry:8081", "", "http://geheim@", "ftp://registry", "http://a,b"])(
    "SEC-01 SER-06 '%s' is refused as an address, without showing it",
    (url) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(Layer.build(layer({ url })))
        assert.include(error.message, "url: found (not shown)")
        assert.notInclude(error.message, "geheim")
      })
  )

  it.effect.each([
    [{ password: "geheim" }, "password: found a value of type string"],
    [{ token: "geheim" }, "token: found a value of type string"],
    [{ username: 5 }, "username: found 5"]
  ])("SEC-01 %j: a secret as plain text, or a value of another kind, is refused, and not shown", ([wrong, said]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Layer.build(layer({ url: "http://registry:8081", ...(wrong as object) })))
      assert.include(error.message, said as string)
      assert.notInclude(error.message, "geheim")
    })
  )
})
