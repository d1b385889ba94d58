/** A binding that says its own name, as the body of a request does. */
import { assert, describe, it } from "@effect/vitest"
import { Configuration, Handlers, Settings } from "@eventbus/config"
import { Effect } from "effect"

const handlers = Handlers.make({ charge: () => Effect.void })
const paths = (effect: ReturnType<typeof Configuration.parseNamedBinding>) =>
  Effect.map(Effect.flip(effect), ({ issues }) => issues.map(({ path }) => path).sort())

describe("a named binding", () => {
  it.effect("CFG-22 is read like one of a file, from data and from JSON", () =>
    Effect.gen(function* () {
      const body = { name: "orders", topic: "orders", "group-id": "billing", "max-poll-records": 7 }
      const { name: _, ...settings } = body
      const expected = yield* Configuration.decodeBinding("orders", settings)
      assert.deepStrictEqual(yield* Configuration.decodeNamedBinding(body), expected)
      assert.deepStrictEqual(yield* Configuration.parseNamedBinding(JSON.stringify(body)), expected)
      assert.deepStrictEqual([expected.handler, expected.maxPollRecords], ["orders", 7])
    })
  )

  it.effect("CFG-21 all mistakes come at once: name, handler, settings, unknown keys", () =>
    Effect.gen(function* () {
      const body = { name: 7, topic: "orders", concurrency: 0, handler: "chrage", "x-more": 1, topik: 2 }
      const expected = ["concurrency", "groupId", "handler", "name", "topik", "x-more"]
      assert.deepStrictEqual(yield* paths(Configuration.decodeNamedBinding(body, { handlers })), expected)
      assert.deepStrictEqual(
        yield* paths(Configuration.parseNamedBinding(JSON.stringify(body), { handlers })),
        expected
      )
    })
  )

  it.effect("the default handler is the name, once the name is one", () =>
    Effect.gen(function* () {
      const of = (name: unknown) => Configuration.decodeNamedBinding({ name, topic: "o", groupId: "g" }, { handlers })
      assert.deepStrictEqual(yield* paths(of("orders")), ["handler"])
      assert.deepStrictEqual(yield* paths(of(" ")), ["name"])
      assert.strictEqual((yield* of("charge")).handler, "charge")
      const long = { name: "n".repeat(300), topic: "o", groupId: "g", staticMembership: true }
      assert.deepStrictEqual(yield* paths(Configuration.decodeNamedBinding(long)), ["name"])
    })
  )

  it.effect("CFG-21 a group that Kafka's protocol cannot carry is refused with its path and the bound", () =>
    Effect.gen(function* () {
      const long = "g".repeat(40_000)
      const body = { name: "orders", topic: "o", groupId: long, adopts: ["old", long] }
      const { issues } = yield* Effect.flip(Configuration.decodeNamedBinding(body))
      assert.deepStrictEqual(
        issues.map(({ path, found }) => [path, found]),
        [
          ["groupId", "a text of 40000 bytes"],
          ["adopts[1]", "a text of 40000 bytes"]
        ]
      )
      for (const { allowed } of issues) assert.match(allowed, /^at most 32500 bytes of UTF-8/)
    })
  )

  it.effect("CFG-21 JSON with duplicates, and what is no object, is refused", () =>
    Effect.gen(function* () {
      const text = '{"name":"orders","name":"other","topic":"o","group-id":"g","groupId":"h"}'
      assert.deepStrictEqual(yield* paths(Configuration.parseNamedBinding(text)), ["groupId", "name"])
      for (const wrong of ["", "[]", "7", "{", "null"])
        assert.deepStrictEqual(yield* paths(Configuration.parseNamedBinding(wrong)), [""])
    })
  )

  it.effect("CFG-21 of thousands of mistakes the first are listed and the rest are counted, in little time", () =>
    Effect.gen(function* () {
      const body = { name: "orders", topic: "orders", groupId: "g" }
      const keys = Object.fromEntries(Array.from({ length: 60_000 }, (_, index) => [`key${index}`, 1]))
      const adopts = Array.from({ length: 60_000 }, () => 1)
      for (const wrong of [
        { ...body, ...keys },
        { ...body, adopts }
      ]) {
        const beganMillis = performance.now()
        const { issues } = yield* Effect.flip(Configuration.parseNamedBinding(JSON.stringify(wrong)))
        assert.isBelow(performance.now() - beganMillis, 5_000)
        assert.lengthOf(issues, 201)
        assert.strictEqual(issues.at(-1)?.found, "59800 more mistakes")
      }
    })
  )

  it("CFG-23 a duration is parsed as in a file", () => {
    assert.deepStrictEqual(
      ["7d", "1m 30s", "10 seconds", "PT10S"].map(Settings.parseDuration),
      [604_800_000, 90_000, 10_000, 10_000]
    )
    assert.deepStrictEqual(["", "7", "tomorrow"].map(Settings.parseDuration), [Number.NaN, Number.NaN, Number.NaN])
  })

  it("ADM-11 what is deleted lies before a duration ago or a time, never before one to come or a number without its unit", () => {
    const now = Date.UTC(2026, 0, 8)
    const cutoff = (text: string) => Settings.parseCutoff(text, now)
    const since = Date.UTC(2026, 0, 1)
    assert.deepStrictEqual(["7d", "2026-01-01", String(since)].map(cutoff), [since, since, since])
    assert.strictEqual(cutoff("1970-01-01"), 0)
    // A clock may be a minute fast.
    assert.strictEqual(cutoff("2026-01-08T00:01:00Z"), now + 60_000)
    for (const wrong of ["2026-01-08T00:02:00Z", String(now + 60_001), "7", "0", "-5", "946684799999", "old"])
      assert.isNaN(cutoff(wrong), wrong)
  })
})
