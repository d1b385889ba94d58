/** OPS-18: the OpenAPI document describes every route, and every mutation of a request is 400 with the path of what is wrong. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import * as fc from "fast-check"
import manifest from "../package.json" with { type: "json" }
import { start } from "./api.ts"
import * as OutboxOf from "./outboxOf.ts"

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required: boolean
}
interface Operation {
  readonly parameters: ReadonlyArray<Parameter>
  readonly requestBody?: { readonly content: { readonly "application/json": { readonly schema: JsonSchema } } }
  readonly responses: Readonly<Record<string, { readonly content?: unknown }>>
  readonly security: ReadonlyArray<unknown>
}
interface JsonSchema {
  readonly type?: string | ReadonlyArray<string>
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly items?: JsonSchema
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly enum?: ReadonlyArray<string>
  readonly minimum?: number
  readonly maximum?: number
}

const documentOf = Effect.fnUntraced(function* () {
  const { outbox } = yield* OutboxOf.make
  const program = yield* start({ outbox })
  const { status, body } = yield* program.call("GET", "/eventbus/openapi.json")
  assert.strictEqual(status, 200)
  const paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> = body.paths
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation }))
  )
  return { ...program, document: body, operations }
})

/** A program for the many runs of a property. */
const property = <A>(
  body: (run: (request: Parameters<Program["call"]>) => ReturnType<typeof answer>, program: Program) => Promise<A>
) =>
  Effect.runPromise(
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const program = yield* Scope.provide(documentOf(), scope)
      const run = (request: Parameters<Program["call"]>) => answer(program, request)
      const result = yield* Effect.exit(Effect.promise(() => body(run, program)))
      yield* Scope.close(scope, Exit.void)
      return yield* result
    })
  )
type Program = Effect.Success<ReturnType<typeof documentOf>>
const answer = async ({ call }: Program, request: Parameters<Program["call"]>) => {
  const { status, body } = await Effect.runPromise(call(...request))
  const paths: ReadonlyArray<string> = (body?.issues ?? []).map(({ path }: { readonly path: string }) => path)
  return { status, tag: body?._tag, paths, body }
}

describe("OPS-18 OpenAPI", () => {
  it.live(
    "is 3.1 and has exactly the seed's routes and those for dead letters, each with its permission to see a credential and its errors",
    () =>
      Effect.gen(function* () {
        const { document, operations } = yield* documentOf()
        assert.match(document.openapi, /^3\.1\./)
        assert.strictEqual(document.info.version, manifest.version)
        assert.deepStrictEqual(operations.map(({ method, path }) => `${method} ${path}`).sort(), [
          "DELETE /eventbus/bindings/{name}",
          "DELETE /eventbus/bindings/{name}/dlt",
          "GET /eventbus/audit",
          "GET /eventbus/bindings",
          "GET /eventbus/bindings/{name}",
          "GET /eventbus/bindings/{name}/dlt/groups",
          "GET /eventbus/bindings/{name}/dlt/plans/{id}",
          "GET /eventbus/bindings/{name}/dlt/plans/{id}/sample",
          "GET /eventbus/bindings/{name}/dlt/records",
          "GET /eventbus/bindings/{name}/dlt/records/{position}",
          "GET /eventbus/bindings/{name}/dlt/records/{position}/transformed",
          "GET /eventbus/bindings/{name}/dlt/rehearsals/{id}",
          "GET /eventbus/bindings/{name}/dlt/runs",
          "GET /eventbus/bindings/{name}/dlt/runs/{id}",
          "GET /eventbus/bindings/{name}/dlt/stats",
          "GET /eventbus/bindings/{name}/held",
          "GET /eventbus/bindings/{name}/parked",
          "GET /eventbus/bindings/{name}/permissions",
          "GET /eventbus/fleet",
          "GET /eventbus/health",
          "GET /eventbus/outbox/dead/events",
          "GET /eventbus/outbox/dead/events/{eventId}",
          "GET /eventbus/outbox/dead/groups",
          "GET /eventbus/outbox/dead/plans/{id}",
          "GET /eventbus/outbox/dead/runs/{id}",
          "GET /eventbus/outbox/permissions",
          "GET /eventbus/stream",
          "POST /eventbus/bindings",
          "POST /eventbus/bindings/{name}/dlt/plans",
          "POST /eventbus/bindings/{name}/dlt/plans/{id}/apply",
          "POST /eventbus/bindings/{name}/dlt/rehearsals",
          "POST /eventbus/bindings/{name}/dlt/replay",
          "POST /eventbus/bindings/{name}/dlt/replay-to-tier",
          "POST /eventbus/bindings/{name}/dlt/runs/{id}/cancel",
          "POST /eventbus/bindings/{name}/dlt/runs/{id}/pause",
          "POST /eventbus/bindings/{name}/dlt/runs/{id}/rate",
          "POST /eventbus/bindings/{name}/dlt/runs/{id}/resume",
          "POST /eventbus/bindings/{name}/held/{position}/dead-letter",
          "POST /eventbus/bindings/{name}/held/{position}/skip",
          "POST /eventbus/bindings/{name}/parked/accept-loss",
          "POST /eventbus/bindings/{name}/parked/{position}/retry",
          "POST /eventbus/bindings/{name}/parked/{position}/skip",
          "POST /eventbus/bindings/{name}/pause",
          "POST /eventbus/bindings/{name}/resume",
          "POST /eventbus/bindings/{name}/start",
          "POST /eventbus/bindings/{name}/stop",
          "POST /eventbus/outbox/dead/events/{eventId}/discard",
          "POST /eventbus/outbox/dead/events/{eventId}/replay",
          "POST /eventbus/outbox/dead/plans",
          "POST /eventbus/outbox/dead/plans/{id}/apply",
          "POST /eventbus/outbox/dead/runs/{id}/cancel"
        ])
        for (const { path, operation } of operations) {
          assert.deepStrictEqual(operation.security, [{ bearer: [] }], path)
          for (const status of ["401", "403", ...statusesOf(path)]) assert.property(operation.responses, status, path)
        }
        for (const { path, method, operation } of operations) {
          const names = operation.parameters.map(({ name }) => name)
          const isPost = method === "POST"
          assert.strictEqual(names.includes("Idempotency-Key"), isPost, `${method} ${path}`)
          assert.strictEqual("422" in operation.responses, isPost, `${method} ${path}`)
        }
        const create = operations.find(({ method, path }) => method === "POST" && path === "/eventbus/bindings")!
        assert.includeMembers(Object.keys(create.operation.responses), ["201", "400", "409", "503"])
        const schema = create.operation.requestBody!.content["application/json"].schema
        assert.includeMembers(Object.keys(schema.properties!), [
          "name",
          "topic",
          "groupId",
          "handler",
          "retry",
          "cluster"
        ])
      })
  )

  it("every operation refuses an unknown, a missing, a repeated and a wrong parameter with its path, all at once", () =>
    property(async (run, { operations }) => {
      const good: Readonly<Record<string, string>> = {
        transform: "repair",
        ...{ count: "1", keys: "1", tier: "1", from: "0", to: "1", olderThan: "1d" },
        ...{ group: "v1-a", state: "waiting", text: "x", before: "0", limit: "1" },
        ...{ after: "1h", binding: "orders", reason: "x", topic: "orders", messages: "true" },
        ...{ eventType: "Placed", aggregateType: "order", aggregateId: "o-1", next: "0" },
        page: "0.1.2.3.orders"
      }
      // A text without a digit is neither a number nor a time nor a duration.
      const nonsense = fc.string({ unit: "grapheme" }).filter((text) => !/\d/.test(text))
      const nasty = fc.constantFrom(
        "0",
        "-1",
        "1.5",
        "1e3",
        "0x10",
        "NaN",
        "Infinity",
        "9".repeat(20),
        "01:00",
        " 1",
        "1 ",
        ""
      )
      const nastyTimes = fc.constantFrom(
        "2026-02-30",
        "2026-13-01",
        "2026-01-01T00:00",
        "2026-01-01T25:00Z",
        "1.5",
        "1e3",
        "yesterday",
        "1 day ago",
        "",
        "9".repeat(20)
      )
      const numbers: ReadonlySet<string> = new Set(["count", "keys", "tier", "limit"])
      const longOrBlank = fc.constantFrom("", " ", "x".repeat(129))
      const texts: Readonly<Record<string, fc.Arbitrary<string>>> = {
        text: fc.constantFrom("", "x".repeat(201)),
        reason: fc.constantFrom("", " ", "x".repeat(1_001)),
        binding: fc.constantFrom("", "x".repeat(1_025)),
        topic: fc.constantFrom("", "..", "a b", "x".repeat(250)),
        group: fc.constantFrom("", "v1-", "own-", "v1 a", "a"),
        state: fc.constantFrom("", "open", "waiting,", "WAITING", "waiting failed"),
        transform: fc.constantFrom(""),
        next: fc.constantFrom("", "x", "1.", "-1", "1,2", "9".repeat(20)),
        ...{ eventType: longOrBlank, aggregateType: longOrBlank, aggregateId: longOrBlank },
        before: fc.constantFrom("", "x", "1.", "-1", "1,2", "9".repeat(20)),
        page: fc.constantFrom("", "x", "1.", "4.1.2.3.orders", "0.1.2.3.a b")
      }
      const wrong = (name: string) => texts[name] ?? fc.oneof(nonsense, numbers.has(name) ? nasty : nastyTimes)
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom(...operations),
          fc.infiniteStream(fc.nat()),
          fc.string({ minLength: 1 }),
          async (target, choices, extra) => {
            const { method, path, operation } = target
            const query = operation.parameters.filter((parameter) => parameter.in === "query")
            const url = path
              .replace("{name}", "orders")
              .replace("{position}", "0@0")
              .replace(/\{(?:id|eventId)\}/, "none")
            const next = () => choices.next().value
            const refused: Array<string> = []
            const parts: Array<string> = []
            for (const { name, required } of query) {
              const choice = next() % (required ? 3 : 2)
              if (choice === 2) refused.push(name)
              else if (choice === 1) {
                const [text] = fc.sample(wrong(name), { numRuns: 1, seed: next() })
                parts.push(`${name}=${encodeURIComponent(text!)}`)
                refused.push(name)
              } else parts.push(`${name}=${good[name]}`, ...(next() % 4 === 0 ? [`${name}=${good[name]}`] : []))
            }
            const repeated = query.filter(({ name }) => parts.filter((part) => part.startsWith(`${name}=`)).length > 1)
            const isKnown = query.some(({ name }) => name === extra)
            const all = [...refused, ...repeated.map(({ name }) => name), ...(isKnown ? [] : [extra])].sort()
            const search = [...parts, ...(isKnown ? [] : [`${encodeURIComponent(extra)}=1`])].join("&")
            const got = await run([method, `${url}?${search}`])
            assert.deepStrictEqual([got.status, got.tag, [...got.paths].sort()], [400, "InvalidRequest", all], search)
          }
        ),
        { numRuns: 300 }
      )
    }))

  it("every key of the body of a registration refuses a wrong value with its path", () =>
    property(async (run, { operations }) => {
      const create = operations.find(({ method, path }) => method === "POST" && path === "/eventbus/bindings")!
      const { schema } = create.operation.requestBody!.content["application/json"]
      const mutations = mutationsOf(schema, [])
      assert.isAbove(mutations.length, 200)
      await fc.assert(
        fc.asyncProperty(
          fc.uniqueArray(fc.constantFrom(...mutations), {
            minLength: 1,
            maxLength: 3,
            selector: ({ path }) => path[0]
          }),
          async (chosen) => {
            const body = chosen.reduce<object>((rest, { path, value }) => put(rest, path, value), base)
            const got = await run(["POST", "/eventbus/bindings", { body }])
            const shown = JSON.stringify(chosen)
            assert.deepStrictEqual([got.status, got.tag], [400, "ConfigurationValidation"], shown)
            for (const { path } of chosen) {
              const [top] = path
              assert.isTrue(
                got.paths.some((each) => each === top || each.startsWith(`${top}.`) || each.startsWith(`${top}[`)),
                `${shown} ${got.paths}`
              )
            }
          }
        ),
        { numRuns: 400 }
      )
      // Nothing of it was registered, and the unmutated body can be.
      assert.strictEqual((await run(["GET", "/eventbus/bindings"])).body.length, 1)
      assert.strictEqual((await run(["POST", "/eventbus/bindings", { body: base }])).status, 201)
    }))

  it("every key of the body alone: the issue has exactly its path", () =>
    property(async (run, { operations }) => {
      const create = operations.find(({ method, path }) => method === "POST" && path === "/eventbus/bindings")!
      const { schema } = create.operation.requestBody!.content["application/json"]
      for (const { path, value, isExact } of mutationsOf(schema, [])) {
        const got = await run(["POST", "/eventbus/bindings", { body: put(base, path, value) }])
        const text = path.join(".")
        assert.strictEqual(got.status, 400, `${text} ${JSON.stringify(value)}`)
        assert.isTrue(
          isExact ? got.paths.includes(text) : got.paths.some((each) => each.startsWith(text)),
          `${text} = ${JSON.stringify(value)}: ${got.paths}`
        )
      }
    }))

  it("every key of the bodies about bindings, plans, runs and dead events refuses a wrong value with its path, alone and beside others", () =>
    property(async (run, { operations, memory }) => {
      await Effect.runPromise(memory.createTopic("orders.DLT", { partitions: 1 }))
      const targets = operations.flatMap(({ path, operation }) => {
        const good = bodies[path.replace(/^.*(?:\{name\}|\/eventbus)\//, "")]
        return good === undefined || operation.requestBody === undefined
          ? []
          : [{ path, good, schema: operation.requestBody.content["application/json"].schema }]
      })
      assert.strictEqual(targets.length, 10)
      const refusal = async (path: string, good: object, chosen: ReadonlyArray<Mutation>) => {
        const body = chosen.reduce<object>((rest, { path: at, value }) => put(rest, at, value), good)
        const url = path.replace("{name}", "orders").replace("{id}", "6f1c2c1e-8a55-4a44-9c53-1f9a7d3f6b20")
        const got = await run(["POST", url, { body }])
        const text = `${url} ${JSON.stringify(chosen)} ${got.paths}`
        assert.deepStrictEqual([got.status, got.tag], [400, "InvalidRequest"], text)
        for (const { path: at, isExact } of chosen) {
          const name = at.join(".")
          assert.isTrue(
            got.paths.some((each) => (isExact ? each === name : each.startsWith(name))),
            text
          )
        }
      }
      for (const { path, good, schema } of targets) {
        const mutations = mutationsOf(schema, [])
        for (const mutation of mutations) await refusal(path, good, [mutation])
        const several = fc.uniqueArray(fc.constantFrom(...mutations), {
          ...{ minLength: 1, maxLength: 3 },
          selector: ({ path: at }) => at[0]
        })
        await fc.assert(
          fc.asyncProperty(several, (chosen) => refusal(path, good, chosen)),
          { numRuns: 100 }
        )
      }
      // Nothing of it made a plan, and the unmutated body does.
      assert.strictEqual(
        (await run(["POST", "/eventbus/bindings/orders/dlt/plans", { body: bodies["dlt/plans"] }])).status,
        201
      )
      const ofEvents = await run(["POST", "/eventbus/outbox/dead/plans", { body: bodies["outbox/dead/plans"] }])
      assert.strictEqual(ofEvents.status, 201)
    }))
})

/** Of routes about a binding, and of those about the outbox, which a program need not have. */
const statusesOf = (path: string): ReadonlyArray<string> =>
  path.includes("{name}") ? ["404", "409"] : path.includes("/outbox/") ? ["404"] : []

/** Bodies that are taken, by the part of the path behind the binding. */
const bodies: Readonly<Record<string, object>> = {
  start: { scope: "fleet", reason: "the shop is empty" },
  stop: { scope: "fleet", reason: "the shop is full" },
  pause: { scope: "fleet", reason: "the shop is full", tier: 1, until: 1 },
  resume: { scope: "fleet", reason: "the shop is empty", tier: 1 },
  "dlt/plans": { action: "toTier", tier: 1, select: { groups: ["v1-a"] }, reason: "the gateway is back" },
  "dlt/runs/{id}/pause": { reason: "the shop is full" },
  "dlt/runs/{id}/cancel": { reason: "wrong letters" },
  "dlt/runs/{id}/rate": { rate: 5 },
  "outbox/dead/plans": { action: "replay", select: { groups: ["v1-a"] }, reason: "the gateway is back" },
  "outbox/dead/runs/{id}/cancel": { reason: "wrong events" }
}

const base = { name: "payments", topic: "payments", groupId: "payers", handler: "charge", autoStartup: false }

interface Mutation {
  readonly path: ReadonlyArray<string>
  readonly value: unknown
  readonly isExact: boolean
}

/** Values that a key cannot have, by its schema. */
const mutationsOf = (schema: JsonSchema, path: ReadonlyArray<string>): ReadonlyArray<Mutation> => {
  const at = (...values: ReadonlyArray<unknown>) => values.map((value) => ({ path, value, isExact: true }))
  if (schema.properties !== undefined) {
    const below = Object.entries(schema.properties).flatMap(([key, each]) => mutationsOf(each, [...path, key]))
    const unknown = { path: [...path, "noSuchKey"], value: 1, isExact: true }
    return [...below, unknown, ...(path.length === 0 ? [] : at(7, "text", true))]
  }
  // An object that stands for a list or a value is refused at the path or below it.
  const anObject = { path, value: { noSuchKey: { deeper: true } }, isExact: false }
  const types = [schema, ...(schema.anyOf ?? [])].flatMap(({ type = [] }) => type)
  const leaf = schema.anyOf?.[0] ?? schema
  return [
    anObject,
    ...(leaf.enum === undefined ? [] : at("NO_SUCH_VALUE", 7, true)),
    ...(types.includes("integer") || types.includes("number")
      ? at(
          true,
          "many",
          ...(leaf.minimum === undefined ? [] : [leaf.minimum - 1]),
          ...(leaf.maximum === undefined ? [] : [leaf.maximum + 1])
        )
      : []),
    ...(types.includes("integer") ? at(1.5) : []),
    ...(types.includes("boolean") ? at("yes", 1) : []),
    ...(types.includes("string") && !types.includes("integer") && !types.includes("number") ? at(7, true, "") : []),
    ...(types.includes("array") ? at(7, true) : [])
  ]
}

const put = (target: object, [key, ...rest]: ReadonlyArray<string>, value: unknown): object => ({
  ...target,
  [key!]: rest.length === 0 ? value : put((Reflect.get(target, key!) as object | undefined) ?? {}, rest, value)
})
