import { assert, describe, it } from "@effect/vitest"
import { Configuration, Handler } from "@eventbus/config"
import { Binding, DeadLetter, RetryPolicy, Serde } from "@eventbus/core"
import { Effect } from "effect"
import { withOrders } from "../issues.ts"

/** All plain settings of a binding: no functions, and no settings as they were written. */
const plain = ({ definition }: Binding.Binding<unknown>) =>
  Object.fromEntries(
    Object.entries(definition).filter(
      ([key]) => !["handler", "classify", "tiers", "enrich", "serdes", "given", "rehearsed"].includes(key)
    )
  )

const inFile = (...lines: ReadonlyArray<string>) =>
  Effect.map(Configuration.parse(withOrders(...lines)), (configuration) => {
    const [binding] = Configuration.withoutHandlers(configuration)
    return { binding: binding!, settings: configuration.bindings[0]! }
  })

const options = { topic: "orders", groupId: "billing", value: Serde.bytes, handler: () => Effect.void }

describe("a binding in a file and the same one in code", () => {
  it.effect("RCH-14 CFG-07 have the same defaults for every setting, the three retry tiers included", () =>
    Effect.gen(function* () {
      const lists = { retryableExceptions: [], nonRetryableExceptions: [], skipToTierMapping: new Map() }
      const { binding } = yield* inFile()
      const inCode = Binding.make("orders", { ...options, retry: RetryPolicy.tiered(lists) })
      assert.deepStrictEqual(plain(binding), {
        ...plain(inCode),
        deadLetter: DeadLetter.withSettings(DeadLetter.storeOnly, {
          topicSuffix: undefined,
          headers: { brokers: false, trailJson: false },
          maxReplays: 3,
          origins: []
        })
      })
      const { tiers, ...others } = Binding.make("orders", options).definition.retry
      assert.deepInclude(binding.definition.retry, { tiers, ...others })
    })
  )

  it.effect("CFG-19 have no tiers by default where the order is STRICT", () =>
    Effect.gen(function* () {
      const { binding } = yield* inFile("ordering-mode: STRICT")
      const strict = Binding.make("orders", { ...options, orderingMode: "STRICT" })
      assert.deepInclude(binding.definition.retry, strict.definition.retry)
    })
  )

  it.effect("CFG-22 use the same words; the section names of connector seed §4.1 are aliases", () =>
    Effect.gen(function* () {
      const blocking = "{ max-attempts: 4, initial-backoff: 1s }"
      const replay = "{ strategy: SCHEDULED_REPLAY, replay: { max-replays: 5 } }"
      const words = yield* inFile(`retry: { blocking: ${blocking} }`, `dead-letter: ${replay}`)
      const aliases = yield* inFile(`retry: { tier0: ${blocking} }`, `dlt: ${replay}`)
      assert.deepStrictEqual(aliases.settings, words.settings)
      assert.deepInclude(words.settings.retry.blocking, { maxAttempts: 4, initialBackoffMs: 1_000 })
      assert.strictEqual(words.settings.deadLetter.replay.maxReplays, 5)
      const { issues } = yield* Effect.flip(inFile("dlt: {}", "dead-letter: {}"))
      assert.deepStrictEqual(
        issues.map(({ path, found }) => [path, found]),
        [["eventbus.bindings.orders.deadLetter", '"dead-letter" beside "dlt", in line 6, a duplicate']]
      )
    })
  )

  it.effect("OPS-06 a binding of a file takes the transforms of its handler", () =>
    Effect.gen(function* () {
      const configuration = yield* Configuration.parse(withOrders())
      const repair = () => Effect.succeed({ value: "repaired" })
      const handler = Handler.make({ value: Serde.string, handler: () => Effect.void, transforms: { repair } })
      const { definition } = handler.bind(configuration.bindings[0]!)
      assert.deepStrictEqual([...definition.transforms], [["repair", repair]])
    })
  )

  it.effect("CFG-22 variables take aliases too", () =>
    Effect.gen(function* () {
      const env = {
        EVENTBUS_BINDINGS_ORDERS_RETRY_TIER0_MAX_ATTEMPTS: "4",
        EVENTBUS_BINDINGS_ORDERS_DEAD_LETTER_TOPIC_SUFFIX: "dead"
      }
      const { bindings } = yield* Configuration.parse(withOrders(), { env })
      assert.strictEqual(bindings[0]!.retry.blocking.maxAttempts, 4)
      assert.strictEqual(bindings[0]!.deadLetter.topicSuffix, "dead")
    })
  )
})
