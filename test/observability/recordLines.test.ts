/** Log lines for the person on call: what each record that was not handled says, once for each of its failures. */
import { assert, describe } from "@effect/vitest"
import {
  Binding,
  Broker,
  BrokerError,
  DeadLetter,
  Hostname,
  LogFormat,
  Outcome,
  RetryPolicy,
  Route,
  Serde
} from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Data, Effect, Logger, References, type Scope } from "effect"
import { advance, append, bytes, inTime, orders, scenario, settle, start } from "../scenarios/bus.ts"

class GatewayDown extends Data.TaggedError("GatewayDown")<{ readonly message: string; readonly cause?: unknown }> {}

type World = MemoryBroker.MemoryBroker | Broker.Broker | Scope.Scope

/** Runs a scenario whose lines about records, and all lines, are kept. */
const logged = <E>(
  title: string,
  body: (log: {
    readonly records: () => ReadonlyArray<string>
    readonly all: Array<string>
  }) => Effect.Effect<void, E, World>,
  format = LogFormat.text,
  options: MemoryBroker.Options = {}
): void =>
  scenario(
    title,
    () => {
      const all: Array<string> = []
      const keep = Logger.map(format, (line) => void all.push(line))
      const records = () => all.filter((line) => / Record |"Record /.test(line))
      return body({ records, all }).pipe(
        Effect.provideService(Hostname.Hostname, "host"),
        Effect.provide(Logger.layer([keep]))
      )
    },
    options
  )

const createTopics = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions: 4 })
  for (const topic of ["orders.retry-1", "orders.retry-2", "orders.DLT"]) yield* memory.createTopic(topic)
  return memory
})

const tiered = RetryPolicy.tiered({
  blocking: { maxAttempts: 2, initialBackoff: "1 second", jitter: 0 },
  tiers: [
    { delay: "10 seconds", maxAttempts: 1 },
    { delay: "1 minute", maxAttempts: 2 }
  ]
})

const down = (cause?: unknown) =>
  new GatewayDown({ message: "503 from the gateway", ...(cause === undefined ? {} : { cause }) })

const failing = {
  ...orders,
  retry: tiered,
  onError: { GatewayDown: Route.retry },
  handler: () => Effect.fail(down())
} as const

const firstLine = (line: string | undefined) => line?.split("\n")[0]

describe("OPS-23 the log line of a record that was not handled", () => {
  logged(
    "OPS-23 a copy that the broker refuses: the line has topic, partition and offset of the record, and names the topic of the copy",
    ({ all }) =>
      Effect.gen(function* () {
        yield* createTopics
        yield* append("orders", 3, ["bad"])
        yield* start(Binding.make("orders", failing))
        yield* advance("5 seconds")
        const refused = all.map(firstLine).filter((line) => line?.includes("Cannot publish"))
        assert.deepStrictEqual(
          refused.map((line) => line?.slice(0, line.indexOf(";"))),
          ["ERROR [orders|orders|3|0|billing|host-0] Cannot publish to 'orders.retry-1'"]
        )
      }),
    LogFormat.text,
    {
      faults: FaultPlan.make([
        FaultPlan.nth(
          1,
          { operation: "produce", topic: "orders.retry-1" },
          { _tag: "Refuse", error: new BrokerError.RecordRejected({ topic: "orders.retry-1", detail: "no" }) }
        )
      ])
    }
  )

  logged(
    "OPS-23 one line at each failed delivery: origin, attempt of how many in total, when the next one is due; the stack once at the end",
    ({ records }) =>
      Effect.gen(function* () {
        yield* createTopics
        yield* append("orders", 3, ["fine", "bad"])
        yield* start(
          Binding.make("orders", {
            ...failing,
            handler: ({ value }) => (value === "fine" ? Effect.void : Effect.fail(down()))
          })
        )
        for (let minute = 0; minute < 5; minute++) yield* advance("1 minute")
        const error = "original orders-3@1: GatewayDown: 503 from the gateway"
        assert.deepStrictEqual(records().map(firstLine), [
          `WARN [orders|orders|3|1|billing|host-0] Record routed to orders.retry-1 after attempt 2 of 8, next attempt at 1970-01-01T00:00:11.000Z, ${error}`,
          `WARN [orders|orders.retry-1|0|0|billing|host-0] Record routed to orders.retry-2 after attempt 4 of 8, next attempt at 1970-01-01T00:01:12.000Z, ${error} retryTier=1`,
          `WARN [orders|orders.retry-2|0|0|billing|host-0] Record routed to orders.retry-2 after attempt 6 of 8, next attempt at 1970-01-01T00:02:13.000Z, ${error} retryTier=2`,
          `WARN [orders|orders.retry-2|0|1|billing|host-0] Record dead-lettered to orders.DLT after attempt 8 of 8 (RETRIES_EXHAUSTED), ${error} retryTier=2`
        ])
        const [dead, ...before] = records().toReversed()
        assert.match(dead!, /\nGatewayDown: 503 from the gateway\n {4}at /)
        for (const line of before) assert.notInclude(line, "\n")
      })
  )

  logged("OPS-23 the line is true about the time: the next attempt starts at the time that it names", ({ records }) =>
    Effect.gen(function* () {
      yield* createTopics
      yield* append("orders", 0, ["bad"])
      const calls: Array<number> = []
      yield* start(
        Binding.make("orders", {
          ...failing,
          handler: () =>
            Effect.clockWith((clock) => Effect.sync(() => calls.push(clock.currentTimeMillisUnsafe()))).pipe(
              Effect.andThen(down())
            )
        })
      )
      for (let second = 0; second < 300; second++) yield* advance("1 second")
      const named = records().flatMap((line) => Array.from(line.matchAll(/next attempt at (\S+),/g), ([, at]) => at))
      // The first one of each delivery in a tier.
      const began = calls.filter((_, index) => index % 2 === 0).slice(1)
      assert.deepStrictEqual(
        named,
        began.map((at) => new Date(at).toISOString())
      )
      assert.lengthOf(named, 3)
    })
  )

  logged(
    "OPS-23 JSON has the origin of a copy as annotations beside its own place",
    ({ records }) =>
      Effect.gen(function* () {
        yield* createTopics
        yield* append("orders", 2, ["bad"])
        yield* start(Binding.make("orders", failing))
        for (let minute = 0; minute < 5; minute++) yield* advance("1 minute")
        const [first, ...others] = records().map((line) => JSON.parse(line))
        assert.deepInclude(first, {
          topic: "orders",
          partition: 2,
          offset: 0,
          consumerGroup: "billing",
          cluster: "default"
        })
        assert.notProperty(first, "originalTopic")
        assert.lengthOf(others, 3)
        for (const line of others) {
          assert.deepInclude(line, { originalTopic: "orders", originalPartition: 2, originalOffset: 0 })
          assert.match(line.topic, /^orders\.retry-[12]$/)
        }
      }),
    LogFormat.json
  )

  logged("OPS-23 a failing tryPromise logs its cause, down the chain; the stack of each is at the end", ({ records }) =>
    Effect.gen(function* () {
      yield* createTopics
      yield* append("orders", 0, ["a"])
      const refused = Object.assign(new Error("connect ECONNREFUSED 10.0.0.7:443"), { code: "ECONNREFUSED" })
      yield* start(
        Binding.make("orders", {
          ...{ ...orders, retry: RetryPolicy.none, onError: () => Route.retry },
          handler: () => Effect.tryPromise(() => Promise.reject(new TypeError("fetch failed", { cause: refused })))
        })
      )
      yield* advance("1 second")
      const [line] = records()
      assert.include(
        firstLine(line)!,
        ": UnknownError: An error occurred in Effect.tryPromise, caused by TypeError: fetch failed, caused by Error: connect ECONNREFUSED 10.0.0.7:443"
      )
      assert.match(line!, /\[cause\]: TypeError: fetch failed\n +at .*recordLines\.test\.ts/)
      assert.match(line!, /\[cause\]: Error: connect ECONNREFUSED 10\.0\.0\.7:443\n +at .*recordLines\.test\.ts/)
    })
  )

  logged(
    "OPS-23 C05 hostile errors and endless chains have a line, bounded, that forges no other",
    ({ records, all }) =>
      Effect.gen(function* () {
        yield* createTopics
        const cyclic: { cause?: unknown; message: string } = { message: "round" }
        cyclic.cause = { cause: cyclic, message: "and round" }
        let deep = new Error("level 0")
        for (let level = 1; level < 500; level++)
          deep = new Error(`level ${level} ${"x".repeat(3_000)}`, { cause: deep })
        const hostile: ReadonlyArray<unknown> = [
          new Proxy(new Error("x"), { get: () => assert.fail("read") }),
          Object.defineProperty(new Error("cause throws"), "cause", { get: () => assert.fail("read") }),
          Object.defineProperty(new Error("stack throws"), "stack", { get: () => assert.fail("read") }),
          Object.assign(Object.create(null), { cause: Symbol("x") }),
          cyclic,
          deep,
          new Error("first\nINFO [orders|orders|0|0|g|h] forged"),
          undefined
        ]
        yield* append(
          "orders",
          0,
          hostile.map((_, index) => String(index))
        )
        yield* start(
          Binding.make("orders", {
            ...{ ...orders, retry: RetryPolicy.none },
            handler: ({ value }) => Effect.die(hostile[Number(value)])
          })
        )
        yield* advance("1 second")
        assert.lengthOf(records(), hostile.length)
        for (const line of records()) assert.isBelow(line.length, 60_000)
        for (const line of records()) assert.isBelow(firstLine(line)!.length, 5_000)
        assert.isFalse(
          all.some((line) => line.split("\n").some((each) => each.startsWith("INFO [orders|orders|0|0|g|h]")))
        )
      })
  )

  logged(
    "OPS-23 a record that halts its partition has the stack, and what follows does not repeat it",
    ({ records, all }) =>
      Effect.gen(function* () {
        yield* createTopics
        yield* append("orders", 1, ["a", "b"])
        const { connector } = yield* start(
          Binding.make("orders", {
            ...failing,
            ...{ retry: RetryPolicy.blocking({ maxAttempts: 3, initialBackoff: 0 }), orderingMode: "STRICT" },
            onExhausted: "halt"
          })
        )
        yield* advance("5 seconds")
        const error = "original orders-1@0: GatewayDown: 503 from the gateway"
        const place = (offset: number) => `WARN [orders|orders|1|${offset}|billing|host-0]`
        assert.strictEqual(
          firstLine(records()[0]),
          `${place(0)} Record halted its partition after attempt 3 of 3, ${error}`
        )
        assert.include(records()[0]!, "\n    at ")
        const at = (offset: bigint) => ({ topic: "orders", partition: 1, offset })
        yield* inTime(connector.deadLetter("orders", at(0n), "customer is gone"), "1 second")
        yield* advance("5 seconds")
        yield* inTime(connector.skip("orders", at(1n), "test data"), "1 second")
        yield* advance("5 seconds")
        assert.deepStrictEqual(records().slice(1).map(firstLine), [
          `${place(0)} Record dead-lettered to orders.DLT after attempt 3 of 3 (MANUAL), ${error}`,
          `${place(1)} Record halted its partition after attempt 3 of 3, original orders-1@1: GatewayDown: 503 from the gateway`
        ])
        assert.notInclude(records()[1]!, "\n")
        const decided = all.filter((line) => line.includes("An operator"))
        assert.deepStrictEqual(decided, [
          "WARN [orders|orders|1|0|billing|-] An operator dead-lettered held record orders-1@0: customer is gone",
          "WARN [orders|orders|1|1|billing|-] An operator skipped held record orders-1@1: test data"
        ])
      })
  )

  logged(
    "OPS-23 a record that a rule skips, in a tier too, one that is unreadable, and one that the handler gives away",
    ({ records }) =>
      Effect.gen(function* () {
        yield* createTopics
        yield* append("orders", 0, ['"skipped"', '"skipped in a tier"', '"given away"', "no json"])
        yield* start(
          Binding.make("orders", {
            ...{ ...orders, retry: tiered, value: Serde.string },
            onError: { GatewayDown: (error: GatewayDown) => (error.message === "skip" ? Route.skip : Route.nextTier) },
            handler: ({ value, tier }) => {
              if (value === '"given away"') return Effect.succeed(Outcome.deadLetter("above the limit"))
              if (value === "no json") return Effect.die(new RangeError("no json"))
              const isSkipped = value === '"skipped"' || tier > 0
              return Effect.fail(new GatewayDown({ message: isSkipped ? "skip" : "later" }))
            }
          })
        )
        yield* advance("9 seconds")
        yield* advance("10 seconds")
        const shown = records().map((line) => firstLine(line)!.replace(/^.*\] Record /, ""))
        assert.deepStrictEqual(shown.slice(0, 3), [
          "skipped after attempt 1 of 8, original orders-0@0: GatewayDown: skip",
          "routed to orders.retry-1 after attempt 1 of 8, next attempt at 1970-01-01T00:00:10.000Z, original orders-0@1: GatewayDown: later",
          "dead-lettered to orders.DLT after attempt 1 of 8 (MANUAL), original orders-0@2: DeadLetterResult: above the limit"
        ])
        assert.include(shown, "skipped after attempt 2 of 8, original orders-0@1: GatewayDown: skip retryTier=1")
      })
  )

  logged("OPS-23 an unreadable record had no attempt; a batch that goes on names its own total", ({ records }) =>
    Effect.gen(function* () {
      yield* createTopics
      yield* append("orders", 0, ["no json", '"x"'])
      const value: Serde.Serde<string> = Serde.make({
        name: "json",
        encode: (given: string) => bytes(JSON.stringify(given)),
        decode: (given) => JSON.parse(new TextDecoder().decode(given))
      })
      yield* start(
        Binding.make("orders", {
          ...{ ...failing, value, listenerType: "BATCH", batchFailureStrategy: "DLQ_AND_CONTINUE" }
        })
      )
      yield* advance("5 seconds")
      const [unreadable, exhausted] = records().map((line) => firstLine(line)!)
      assert.match(
        unreadable!,
        /Record dead-lettered to orders\.DLT without an attempt \(NON_RETRYABLE\), original orders-0@0: DecodeFailure: /
      )
      assert.include(exhausted!, "after attempt 2 of 2 (RETRIES_EXHAUSTED), original orders-0@1: ")
    })
  )

  logged("OPS-23 keys only where the binding allows it, values never", ({ all, records }) =>
    Effect.gen(function* () {
      const memory = yield* createTopics
      yield* memory.createTopic("allowed")
      const keys = [bytes("o-17"), Uint8Array.of(0xff, 0x00, 0x2a), null, bytes("k".repeat(300)), bytes("a\nb")]
      for (const topic of ["orders", "allowed"]) {
        yield* memory.append(
          topic,
          0,
          keys.map((key) => ({ key, value: bytes("secret value") }))
        )
      }
      const settings = { ...failing, retry: RetryPolicy.none } as const
      yield* start(Binding.make("orders", settings))
      yield* advance("1 second")
      assert.isFalse(all.some((line) => /o-17|key=|ff002a/.test(line)))
      const before = records().length
      yield* start(Binding.make("allowed", { ...settings, topic: "allowed", groupId: "other", logKeys: true }))
      yield* advance("1 second")
      const shown = records()
        .slice(before)
        .map((line) => / key=(.*)$/.exec(firstLine(line)!)?.[1])
      assert.deepStrictEqual(shown, ["o-17", "0xff002a", "null", `${"k".repeat(128)}…`, "a\\u000ab"])
      assert.isFalse(all.some((line) => line.includes("secret value")))
    })
  )

  logged(
    "OPS-23 many failures have twenty lines a second and says how many it left out, of which binding and group",
    ({ all, records }) =>
      Effect.gen(function* () {
        yield* createTopics
        yield* append(
          "orders",
          0,
          Array.from({ length: 70 }, (_, index) => String(index))
        )
        yield* start(Binding.make("orders", { ...failing, retry: RetryPolicy.none }))
        yield* advance("2 seconds")
        yield* append("orders", 0, ["one more"])
        yield* settle
        assert.lengthOf(records(), 21)
        assert.include(
          all,
          "WARN [orders|-|-|-|billing|-] 50 more records were routed, dead-lettered or skipped within a second"
        )
      })
  )

  scenario("OPS-23 the error is not read for a line while warnings are not logged", () =>
    Effect.gen(function* () {
      const memory = yield* createTopics
      yield* memory.createTopic("other")
      /** How often the cause of the error is read, the connector's own decision about the record included. */
      const readsAt = Effect.fnUntraced(function* (topic: string, level: "Warn" | "Error") {
        let reads = 0
        const error = new Proxy(new Error("x"), {
          get: (target, name) => {
            if (name === "cause") reads++
            return Reflect.get(target, name)
          }
        })
        yield* append(topic, 0, ["a"])
        const settings = { ...orders, topic, groupId: topic, retry: RetryPolicy.none }
        const binding = Binding.make(topic, { ...settings, handler: () => Effect.die(error) })
        yield* Effect.provideService(start(binding), References.MinimumLogLevel, level)
        yield* advance("1 second")
        return reads
      })
      assert.isBelow(yield* readsAt("orders", "Error"), yield* readsAt("other", "Warn"))
    })
  )

  for (const logKeys of [false, true]) {
    logged(
      `OPS-23 PKO-05 a record that is held says so: ${logKeys ? "which key waits" : "where the key is that waits"}, and how it goes on`,
      ({ records }) =>
        Effect.gen(function* () {
          yield* createTopics
          yield* append("orders", 0, ["bad"])
          yield* start(
            Binding.make("orders", {
              ...{ ...failing, logKeys, orderingMode: "PER_KEY", perKey: { onDeadLetter: "hold" } },
              ...{
                retry: RetryPolicy.tiered({ tiers: ["10 seconds"] }),
                onError: { GatewayDown: Route.deadLetter("no") }
              }
            })
          )
          yield* advance("1 second")
          const [line = assert.fail(), ...more] = records()
          const key = logKeys ? "key 'k0'" : "the key"
          assert.strictEqual(
            firstLine(line)!.replace(/^.*\] /, ""),
            `Record held in orders.retry-1 after attempt 1 of 12, and ${key} of orders-0@0 waits behind it until an operator decides ('eventbus parked retry orders 0@0', or 'skip'), original orders-0@0: GatewayDown: 503 from the gateway${logKeys ? " key=k0" : ""}`
          )
          assert.match(line, /\nGatewayDown: 503 from the gateway\n {4}at /)
          assert.deepStrictEqual(more, [])
        })
    )
  }
})

describe("OPS-23 lines of the connector name their binding", () => {
  logged(
    "OPS-23 cluster, binding and group are on each line, also on those of the broker client and of the strategy",
    ({ all }) =>
      Effect.gen(function* () {
        const memory = yield* createTopics
        const broker: Broker.Broker["Service"] = {
          ...memory.broker,
          consumer: (options) =>
            Effect.andThen(Effect.logInfo("the client connects a consumer"), memory.broker.consumer(options)),
          producer: (options) =>
            Effect.andThen(Effect.logInfo("the client makes a producer"), memory.broker.producer(options))
        }
        const deadLetter = DeadLetter.alertAndStore(() => Effect.andThen(Effect.logInfo("alerting"), Effect.die("no")))
        yield* append("orders", 0, ["a"])
        const binding = Binding.make("orders", { ...failing, retry: RetryPolicy.none, deadLetter })
        const { connector } = yield* Effect.provideService(start(binding), Broker.Broker, broker)
        yield* connector.subscribe((event) => {
          if (event._tag === "StateChanged") throw new BrokerError.RequestTimedOut({ operation: "listen", millis: 1 })
        })
        yield* advance("10 seconds")
        yield* connector.pause("orders")
        yield* advance("10 seconds")
        yield* connector.resume("orders")
        yield* memory.inject({ _tag: "ConnectionDropped" })
        yield* advance("30 seconds")
        const parsed: ReadonlyArray<Record<string, unknown>> = all.map((line) => JSON.parse(line))
        for (const expected of [
          "the client connects a consumer",
          "the client makes a producer",
          "alerting",
          "Binding is PAUSED",
          "Record dead-lettered",
          "Alert handler failed",
          "Partition assigned",
          "Consumer failed"
        ]) {
          const lines = parsed.filter(({ message }) => String(message).startsWith(expected))
          assert.isNotEmpty(lines, expected)
          for (const { cluster, bindingName, consumerGroup } of lines) {
            assert.deepStrictEqual([cluster, bindingName, consumerGroup], ["default", "orders", "billing"], expected)
          }
        }
        const threw = parsed.find(({ message }) => String(message).startsWith("A listener threw"))
        assert.deepInclude(threw, { cluster: "default", bindingName: "orders" })
        // The producer is the binding's: its lines are about no record.
        const producer = parsed.find(({ message }) => message === "the client makes a producer")
        assert.notProperty(producer, "offset")
      }),
    LogFormat.json
  )
})
