/** OPS-21: `GET /stream` says what has changed, over one connection that a caller can take up again. */
import { assert, describe, it } from "@effect/vitest"
import { Authorizer } from "@eventbus/admin"
import { Effect, Fiber, Logger, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { binding, counting, eventually, everything, start, token } from "./api.ts"

interface Event {
  readonly id: string | undefined
  readonly event: string
  // biome-ignore lint/suspicious/noExplicitAny: the JSON of an event
  readonly data: any
}

const parsed = (text: string): Event => {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(text)?.[1]
  return { id: field("id"), event: field("event") ?? "message", data: JSON.parse(field("data") ?? "null") }
}

type Program = Effect.Success<ReturnType<typeof start>>

/** Opens the stream, and reads one event after the other: undefined at its end. */
const open = Effect.fnUntraced(function* (
  { web }: Pick<Program, "web">,
  headers: Readonly<Record<string, string>> = {}
) {
  const request = new Request("http://localhost/eventbus/stream", {
    headers: { authorization: `Bearer ${token}`, ...headers }
  })
  const response = yield* Effect.promise(() => web.handler(request))
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  const next: Effect.Effect<Event | undefined> = Effect.promise(async () => {
    for (;;) {
      const end = rest.indexOf("\n\n")
      if (end >= 0) {
        const event = parsed(rest.slice(0, end))
        rest = rest.slice(end + 2)
        return event
      }
      const { value, done } = await reader.read()
      if (done) return undefined
      rest += value
    }
  })
  return { response, next, cancel: Effect.promise(() => reader.cancel()) }
})

/** The next event that satisfies a condition. */
const nextOf = (next: Effect.Effect<Event | undefined>, holds: (event: Event) => boolean): Effect.Effect<Event> =>
  Effect.flatMap(next, (event) => {
    if (event === undefined) return Effect.die(new Error("The stream has ended"))
    return holds(event) ? Effect.succeed(event) : nextOf(next, holds)
  })

const stateOf = ({ data }: Event): string | undefined => data?.bindings[0]?.state

describe("OPS-21 GET stream", () => {
  it.live("begins with all bindings and their health, and says at once what changes", () =>
    Effect.gen(function* () {
      const program = yield* start()
      yield* eventually(program.call("GET", "/eventbus/health"), ({ body }) => body.ready)
      const { response, next } = yield* open(program)
      assert.strictEqual(response.status, 200)
      assert.match(response.headers.get("content-type")!, /^text\/event-stream/)
      const first = (yield* next)!
      assert.deepStrictEqual([first.event, stateOf(first), first.data.health.status], ["state", "RUNNING", "UP"])
      assert.match(first.id!, /^[0-9a-f]{16}$/)
      yield* program.connector.pause("orders")
      const paused = yield* nextOf(next, (event) => stateOf(event) === "PAUSED")
      assert.notStrictEqual(paused.id, first.id)
      assert.deepStrictEqual(paused.data.bindings, (yield* program.call("GET", "/eventbus/bindings")).body)
      assert.deepStrictEqual(paused.data.health, (yield* program.call("GET", "/eventbus/health")).body)
    })
  )

  it.live("a caller with Last-Event-ID gets the state only if it is another one by now", () =>
    Effect.gen(function* () {
      const program = yield* start({ bindings: [binding("orders", { autoStartup: false })] })
      const first = yield* open(program)
      const { id } = (yield* first.next)!
      yield* first.cancel
      const again = yield* open(program, { "last-event-id": id! })
      assert.deepStrictEqual(yield* again.next, { id: undefined, event: "heartbeat", data: null })
      yield* program.connector.start("orders")
      yield* nextOf(again.next, (event) => event.event === "state" && event.id !== id)
      yield* again.cancel
      const stale = yield* open(program, { "last-event-id": id! })
      assert.strictEqual((yield* stale.next)!.event, "state")
    })
  )

  it.effect("without a change a heartbeat comes every 15 seconds, and after five minutes the stream ends", () =>
    Effect.gen(function* () {
      const program = yield* start({ bindings: [binding("orders", { autoStartup: false })] })
      const { next } = yield* open(program)
      const events: Array<string> = []
      const reading = yield* Effect.forkChild(
        Effect.gen(function* () {
          for (let event = yield* next; event !== undefined; event = yield* next) events.push(event.event)
        })
      )
      const pass = Effect.andThen(
        TestClock.adjust("1 second"),
        Effect.promise(() => new Promise((resume) => setImmediate(resume)))
      )
      for (let second = 0; second < 299; second++) yield* pass
      assert.deepStrictEqual(events, ["state", ...new Array<string>(19).fill("heartbeat")])
      yield* pass
      yield* Fiber.join(reading)
    })
  )

  it.live("it ends with its caller", () =>
    Effect.gen(function* () {
      const { web, looks } = yield* counting(yield* start())
      const { next, cancel } = yield* open({ web })
      yield* next
      assert.isAtLeast(yield* eventually(Effect.sync(looks), (count) => count >= 2), 2)
      yield* cancel
      const before = looks()
      yield* Effect.sleep("2500 millis")
      assert.strictEqual(looks(), before)
    })
  )

  it.effect("all open streams share one look a second, and the text of what it found", () =>
    Effect.gen(function* () {
      const program = yield* start({ bindings: [binding("orders", { autoStartup: false })] })
      let texts = 0
      // Answers another state each time, and counts how often it becomes text.
      const list = Effect.map(program.admin.list, ([first]) => [
        {
          ...first!,
          toJSON: () => {
            texts++
            return { ...first!, lag: texts }
          }
        }
      ])
      const { web, looks } = yield* counting(program, { authorizer: everything }, list)
      const streams = yield* Effect.all(Array.from({ length: 50 }, () => open({ web })))
      for (const { next } of streams) yield* next
      assert.deepStrictEqual([looks(), texts], [50, 50])
      const at = (seconds: number) =>
        Effect.gen(function* () {
          yield* TestClock.adjust(`${seconds} seconds`)
          return yield* Effect.forEach(streams, ({ next }) => next, { concurrency: "unbounded" })
        })
      const found = yield* at(1)
      assert.deepStrictEqual([looks(), texts], [51, 51])
      assert.strictEqual(new Set(found.map((event) => event!.id)).size, 1)
      yield* at(1)
      yield* at(1)
      assert.deepStrictEqual([looks(), texts], [53, 53])
    })
  )

  it.live("it ends once the program closes, after saying so", () =>
    Effect.gen(function* () {
      const program = yield* start()
      const { next } = yield* open(program)
      yield* next
      yield* program.close
      const closing = yield* nextOf(next, ({ data }) => data?.health.ready === false)
      assert.include(
        closing.data.health.reasons.map(({ reason }: { readonly reason: string }) => reason),
        "Closing"
      )
      assert.isUndefined(yield* next)
      // Nobody who comes back holds up a server that stops.
      const again = yield* open(program, { "last-event-id": closing.id! })
      assert.strictEqual((yield* again.next)!.event, "heartbeat")
      assert.isUndefined(yield* again.next)
    })
  )

  it.live("OPS-16 it needs the permission to view all bindings", () =>
    Effect.gen(function* () {
      const of = (...bindings: ReadonlyArray<string>) =>
        Authorizer.fromTokens([
          {
            token: Redacted.make(token),
            name: "o",
            permissions: bindings.length > 0 ? ["view"] : ["operate"],
            bindings
          }
        ])
      for (const authorizer of [of("default:orders"), of()])
        assert.strictEqual((yield* open(yield* start({ authorizer }))).response.status, 403)
      const stranger = { authorization: "Bearer wrong" }
      assert.strictEqual((yield* open(yield* start(), stranger)).response.status, 401)
      const elsewhere = yield* open(yield* start({ authorizer: undefined }), { host: "localhost" })
      assert.strictEqual(elsewhere.response.status, 403)
    })
  )
})

describe("OPS-16 GET bindings/{name}/permissions", () => {
  const permissionsOf = Effect.fnUntraced(function* (options: Parameters<typeof start>[0]) {
    const { call } = yield* start(options)
    const { body } = yield* call("GET", "/eventbus/bindings/orders/permissions", {
      remoteAddress: "127.0.0.1",
      headers: { host: "localhost" }
    })
    return [body.caller, body.permissions]
  })

  it.live("names the caller and what it may do with the binding; reading alone where the API is read-only", () =>
    Effect.gen(function* () {
      const authorizer = Authorizer.fromTokens([
        { token: Redacted.make(token), name: "anna", permissions: ["view", "view-payload", "replay", "operate"] }
      ])
      assert.deepStrictEqual(yield* permissionsOf({ authorizer }), [
        "anna",
        ["view", "view-payload", "operate", "replay"]
      ])
      assert.deepStrictEqual(yield* permissionsOf({ authorizer, readOnly: true }), ["anna", ["view", "view-payload"]])
      assert.deepStrictEqual(yield* permissionsOf({ authorizer: undefined }), ["this machine", ["view"]])
    })
  )

  it.live("an authorizer that gives no answer for a permission does not give it", () =>
    Effect.gen(function* () {
      const authorizer: Authorizer.Authorizer = (_, permission) =>
        permission === "view" ? Effect.succeed({ name: "anna" }) : Effect.die("no answer")
      assert.deepStrictEqual(yield* Effect.provide(permissionsOf({ authorizer }), Logger.layer([])), ["anna", ["view"]])
    })
  )
})

describe("OPS-16 a change on the word of the browser alone", () => {
  /** The session of a framework in front has let the caller through, without a token. */
  const authorizer: Authorizer.Authorizer = () => Effect.succeed({ name: "session" })

  it.live("needs the header x-eventbus-csrf, and is not taken from pages of other sites", () =>
    Effect.gen(function* () {
      const { call, connector } = yield* start({ authorizer })
      const csrf = { "x-eventbus-csrf": "1" }
      const pause = (headers: Readonly<Record<string, string>>, bearer = "") =>
        Effect.map(call("POST", "/eventbus/bindings/orders/pause", { token: bearer, headers }), ({ status, body }) => [
          status,
          body._tag ?? body.state
        ])
      for (const headers of [
        {},
        { "sec-fetch-site": "same-origin" },
        { ...csrf, "sec-fetch-site": "cross-site" },
        { ...csrf, "sec-fetch-site": "same-site" },
        { ...csrf, origin: "https://evil.example", host: "localhost" },
        { ...csrf, origin: "null", host: "localhost" }
      ])
        assert.deepStrictEqual(yield* pause(headers), [403, "CrossSiteRequest"], JSON.stringify(headers))
      assert.strictEqual((yield* connector.listBindings)[0]!.state === "PAUSED", false)
      for (const [headers, bearer] of [
        [{ ...csrf, "sec-fetch-site": "same-origin", origin: "https://bus.example", host: "10.0.0.7:8080" }, ""],
        [{ ...csrf, origin: "https://localhost:8080", host: "localhost:8080" }, ""],
        [csrf, ""],
        [{ "sec-fetch-site": "cross-site" }, token]
      ] as const) {
        assert.deepStrictEqual(yield* pause(headers, bearer), [200, "PAUSED"], JSON.stringify(headers))
        yield* connector.resume("orders")
      }
      // Reading changes nothing.
      assert.strictEqual((yield* call("GET", "/eventbus/bindings", { token: "" })).status, 200)
    })
  )
})
