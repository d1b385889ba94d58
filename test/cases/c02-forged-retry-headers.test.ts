import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, bytes, headersOf, now, orders, scenario, settle, start, valuesOf } from "../scenarios/bus.ts"

const names = {
  timestamp: "x-eventbus-retry-timestamp",
  attempt: "x-eventbus-retry-attempt",
  tier: "x-eventbus-retry-tier",
  total: "x-eventbus-total-attempts",
  topic: "x-eventbus-original-topic",
  partition: "x-eventbus-original-partition",
  offset: "x-eventbus-original-offset"
}
const value = (of: string | Uint8Array | null) => (typeof of === "string" ? bytes(of) : of)
const header = (key: string, of: string | Uint8Array | null) => ({ key, value: value(of) })

const numbers: ReadonlyArray<string | Uint8Array | null> = [
  "99999999999999",
  "8640000000000000",
  "9007199254740993",
  "9".repeat(5_000),
  "2147483648",
  "-1",
  "-5",
  "abc",
  "",
  " 1 ",
  "1e400",
  "NaN",
  "Infinity",
  "0x10",
  "1.5",
  "٣",
  new Uint8Array(8).fill(255),
  new Uint8Array([0xc3, 0x28]),
  null
]

/** Sets of headers that no connector writes. */
const forged: ReadonlyArray<ReadonlyArray<{ readonly key: string; readonly value: Uint8Array | null }>> = [
  [],
  ...Object.values(names).flatMap((name) => numbers.map((number) => [header(name, number)])),
  numbers.map((number) => header(names.timestamp, number)),
  [header(names.timestamp, "0"), header(names.timestamp, "99999999999999")],
  [header(names.topic, "__proto__"), header(names.partition, "0"), header(names.offset, "9223372036854775808")],
  [header(names.topic, "../etc"), header(names.partition, "-0"), header(names.offset, "1")],
  ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "", "ключ"].map((key) => header(key, "x")),
  [header("x-eventbus-tier0-exception", "x".repeat(100_000)), header("x-eventbus-tier0-attempts", "1e400")],
  [header("x-eventbus-tier-1-exception", "x"), header("x-eventbus-tier99-exhausted-at", "-1")]
]

describe("C02 forged or malformed retry headers", () => {
  scenario(
    "RTY-16 SEC-03 ruling 14 no record waits longer than the tier's delay, and records behind a forged one are handled",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* memory.createTopic("orders.retry-1")
        yield* advance("1 minute")
        const appendedMillis = yield* now
        for (const [index, headers] of forged.entries()) {
          yield* memory.append("orders.retry-1", 0, [
            { key: bytes("k"), value: bytes(`forged-${index}`), headers, timestamp: appendedMillis },
            { key: bytes("k"), value: bytes(`normal-${index}`), timestamp: appendedMillis }
          ])
        }
        const handled: Array<string> = []
        const app = yield* start(
          Binding.make("orders", {
            ...orders,
            retry: RetryPolicy.tiered({ tiers: ["1 second", "2 seconds"] }),
            handler: ({ value, tier, attempt }) =>
              Effect.sync(() => {
                assert.strictEqual(tier, 1)
                assert.include([1, 2, 3], attempt)
                handled.push(value)
              })
          })
        )
        yield* advance("1 second")
        yield* settle
        assert.strictEqual(handled.length, forged.length * 2)
        assert.strictEqual(yield* memory.committed("billing", "orders.retry-1", 0), BigInt(forged.length * 2))
        assert.deepStrictEqual(app.of("SessionCrashed"), [])
      })
  )

  scenario(
    "RTY-16 ruling 14 a forged publish time is ignored; the record's own timestamp counts, also after a restart",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* memory.createTopic("orders.retry-1")
        yield* advance("10 minutes")
        const timestamp = yield* now
        const ahead = ["99999999999999", "8640000000000000", String(timestamp + 3_600_001), "NaN", "-1"]
        yield* memory.append(
          "orders.retry-1",
          0,
          ahead.map((text) => ({ key: null, value: bytes("x"), headers: [header(names.timestamp, text)], timestamp }))
        )
        yield* advance("5 minutes")
        let handled = 0
        const retry = RetryPolicy.tiered({ tiers: ["5 minutes"] })
        yield* start(Binding.make("orders", { ...orders, retry, handler: () => Effect.sync(() => handled++) }))
        yield* settle
        assert.strictEqual(handled, ahead.length)
      })
  )

  scenario("RTY-16 records with forged timestamps wait together, not one after another", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic("orders.retry-1")
      const timestamps = [4_102_444_800_000, Number.MAX_SAFE_INTEGER, 8_640_000_000_000_000, -1, 0]
      yield* memory.append(
        "orders.retry-1",
        0,
        Array.from({ length: 50 }, (_, index) => ({ key: null, value: bytes("x"), timestamp: timestamps[index % 5]! }))
      )
      let handled = 0
      const retry = RetryPolicy.tiered({ tiers: ["10 seconds"] })
      yield* start(Binding.make("orders", { ...orders, retry, handler: () => Effect.sync(() => handled++) }))
      yield* advance("10 seconds")
      yield* settle
      assert.strictEqual(handled, 50)
    })
  )

  scenario("RTY-16 SEC-03 a forged record that fails goes through bounded tiers, and its copy has valid headers", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic("orders.retry-1")
      for (const [index, headers] of forged.entries()) {
        yield* memory.append("orders.retry-1", 0, [{ key: bytes("k"), value: bytes(String(index)), headers }])
      }
      const calls = new Map<string, number>()
      yield* start(
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 second", "2 seconds"] }),
          handler: ({ value }) =>
            Effect.suspend(() => {
              calls.set(value, (calls.get(value) ?? 0) + 1)
              return Effect.die("no")
            })
        })
      )
      for (let second = 0; second < 15; second++) yield* advance("1 second")
      const letters = yield* memory.log("orders.DLT", 0)
      assert.strictEqual(letters.length, forged.length)
      for (const count of calls.values()) assert.isAtMost(count, 6)
      for (const letter of letters) {
        const headers = headersOf(letter)
        const own = letter.headers.map(({ key }) => key).filter((key) => key.startsWith("x-eventbus-"))
        assert.strictEqual(new Set(own).size, own.length)
        assert.strictEqual(headers.get(names.tier), "2")
        assert.match(headers.get(names.total) ?? "", /^\d{1,10}$/)
        assert.match(headers.get(names.topic) ?? "", /^[\w.-]+$/)
        assert.match(headers.get(names.offset) ?? "", /^\d{1,19}$/)
      }
    })
  )

  scenario("RTY-16 ruling 14 a record of the main topic starts at Tier 0, whatever its headers claim", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const claims = [
        header(names.tier, "3"),
        header(names.total, "1000"),
        header(names.attempt, "9"),
        header(names.timestamp, "99999999999999"),
        header(names.topic, "other"),
        header(names.partition, "7"),
        header(names.offset, "7"),
        header("x-eventbus-tier2-exception", "Forged"),
        header("x-eventbus-dlt-reason", "MANUAL")
      ]
      yield* memory.append("orders", 0, [{ key: bytes("k"), value: bytes("x"), headers: claims }])
      const tiers: Array<number> = []
      yield* start(
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.tiered({ blocking: { maxAttempts: 2, jitter: 0 }, tiers: ["1 second"] }),
          handler: ({ tier }) =>
            Effect.suspend(() => {
              tiers.push(tier)
              return Effect.die("no")
            })
        })
      )
      for (let second = 0; second < 10; second++) yield* advance("1 second")
      assert.deepStrictEqual(tiers, [0, 0, 1, 1, 1, 1, 1, 1])
      const headers = headersOf((yield* memory.log("orders.DLT", 0))[0])
      assert.strictEqual(headers.get(names.total), "8")
      assert.strictEqual(headers.get(names.topic), "orders")
      assert.strictEqual(headers.get(names.offset), "0")
      assert.isFalse(headers.has("x-eventbus-tier2-exception"))
      assert.strictEqual(headers.get("x-eventbus-dlt-reason"), "RETRIES_EXHAUSTED")
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["x"])
    })
  )
})
