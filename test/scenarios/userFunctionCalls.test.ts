// biome-ignore-all lint/suspicious/noExplicitAny: the answers are of no type that the settings have.

/**
 * Ruling 86: every function of `docs/user-functions.md` that the core calls, with every answer that it may give. None ends the process, the next record is handled, and
 * health is as if the function had thrown.
 */
import { assert, describe } from "@effect/vitest"
import { Binding, CircuitBreaker, DeadLetter, IdempotencyStore, RetryPolicy, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Layer } from "effect"
import { advance, append, orders, scenario, start, text } from "./bus.ts"
import { answers, isRejected, lateOnes, withoutUnhandled } from "./hostileAnswers.ts"

/** How the delivery of record `bad` ends; `any`: that is up to other rules. */
type Fate = "DeadLettered" | "Handled" | "any"

interface Case {
  readonly binding: (bad: () => any, handled: (value: string | null) => void) => Binding.Binding<any>
  readonly fate: Fate | ((answer: string) => Fate)
  readonly layer?: (bad: () => any) => Layer.Layer<IdempotencyStore.IdempotencyStore>
}

const options = { ...orders, retry: RetryPolicy.none } as const
const isBad = (value: unknown): boolean => value === "bad"
const isBadRecord = ({ value }: { readonly value: Uint8Array | null }): boolean => isBad(text(value))
const isEffectOnly = (answer: string): boolean => /succeeds with a Promise$/.test(answer)
const failing = ({ value }: { readonly value: string }) =>
  isBad(value) ? Effect.fail({ _tag: "Declined" } as const) : Effect.void

/** A binding whose records are noted when they are handled, and which is bad in one respect. */
const with_ =
  (
    settings: (bad: () => any) => object,
    handler: (delivery: any) => Effect.Effect<void, unknown> = () => Effect.void
  ) =>
  (bad: () => any, handled: (value: string | null) => void): Binding.Binding<any> =>
    Binding.make("orders", {
      ...options,
      handler: (delivery: any) => Effect.map(handler(delivery), () => handled(delivery.value)),
      ...settings(bad)
    } as any)

const serde = (changes: object): Serde.Serde<string> => ({ ...Serde.string, ...changes })

const store = (bad: () => any) =>
  Layer.effect(
    IdempotencyStore.IdempotencyStore,
    Effect.map(IdempotencyStore.IdempotencyStore, (inner) => {
      let calls = 0
      return {
        ...inner,
        begin: (...of: Parameters<typeof inner.begin>) => (calls++ === 0 ? bad() : inner.begin(...of))
      }
    })
  ).pipe(Layer.provide(IdempotencyStore.layerMemory()))

const cases: Readonly<Record<string, Case>> = {
  handler: {
    binding: (bad, handled) =>
      Binding.make("orders", {
        ...options,
        handler: ({ value }) => (isBad(value) ? bad() : Effect.sync(() => handled(value)))
      }),
    fate: (answer) => (isEffectOnly(answer) ? "Handled" : "DeadLettered")
  },
  handleBatch: {
    binding: (bad, handled) =>
      Binding.makeBatch("orders", {
        ...options,
        maxPollRecords: 1,
        handleBatch: ({ deliveries }) =>
          deliveries.some(({ value }) => isBad(value))
            ? bad()
            : Effect.sync(() => deliveries.map(({ value }) => handled(value)))
      }),
    fate: (answer) => (isEffectOnly(answer) ? "Handled" : "DeadLettered")
  },
  interceptors: {
    binding: with_((bad) => ({
      interceptors: [(call: any, { records }: any) => (isBadRecord(records[0]) ? bad() : call)]
    })),
    fate: (answer) => (isEffectOnly(answer) ? "Handled" : "DeadLettered")
  },
  enrich: {
    binding: with_(
      (bad) => ({ enrich: (record: any) => (isBadRecord(record) ? bad() : []) }),
      ({ headers }) => Effect.succeed(headers)
    ),
    fate: "DeadLettered"
  },
  decode: {
    binding: with_((bad) => ({
      value: serde({ decode: (of: Uint8Array) => (isBad(text(of)) ? bad() : Serde.string.decode(of)) })
    })),
    fate: "DeadLettered"
  },
  "decode of Serde.make": {
    binding: with_((bad) => ({
      value: Serde.make<any>({
        name: "own",
        decode: (of) => (isBad(text(of)) ? bad() : text(of)),
        encode: () => new Uint8Array()
      })
    })),
    fate: (answer) => (/^(an async|a thenable that|a thenable whose then)/.test(answer) ? "DeadLettered" : "Handled")
  },
  prepare: {
    binding: with_((bad) => ({ value: serde({ prepare: (of: Uint8Array) => (isBad(text(of)) ? bad() : undefined) }) })),
    fate: (answer) => (answer === "undefined" || isEffectOnly(answer) ? "any" : "DeadLettered")
  },
  onError: { binding: with_((bad) => ({ onError: { Declined: bad } }), failing), fate: "DeadLettered" },
  classifier: { binding: with_((bad) => ({ classifier: bad }), failing), fate: "DeadLettered" },
  topicFor: {
    binding: with_(
      (bad) => ({ deadLetter: DeadLetter.withSettings(DeadLetter.storeOnly, { topicFor: bad }) }),
      failing
    ),
    fate: "DeadLettered"
  },
  alert: { binding: with_((bad) => ({ deadLetter: DeadLetter.alertAndStore(bad) }), failing), fate: "DeadLettered" },
  isFailure: {
    binding: (bad, handled) => {
      const breaker = Effect.runSync(Effect.scoped(CircuitBreaker.make()))
      return with_(
        () => ({}),
        (delivery) => breaker.protect(failing(delivery), { isFailure: bad })
      )(bad, handled)
    },
    fate: "DeadLettered"
  },
  onChange: {
    binding: (bad, handled) => {
      const breaker = Effect.runSync(Effect.scoped(CircuitBreaker.make()))
      breaker.onChange(bad)
      return with_(
        () => ({}),
        ({ value }) => (isBad(value) ? breaker.forceOpen : breaker.reset)
      )(bad, handled)
    },
    fate: "Handled"
  },
  "key of the idempotency settings": {
    binding: with_((bad) => ({ idempotency: { key: ({ value }: any) => (isBad(value) ? bad() : value) } })),
    fate: "any",
    layer: () => IdempotencyStore.layerMemory()
  },
  "idempotency store": { binding: with_(() => ({ idempotency: {} })), fate: "any", layer: store }
}

describe("ruling 86: a function that answers with something else than its type says", () => {
  for (const [name, { binding, fate, layer = () => IdempotencyStore.layerMemory() }] of Object.entries(cases)) {
    for (const [answer, bad] of Object.entries(answers)) {
      scenario(`${name}: ${answer}`, () =>
        withoutUnhandled(() =>
          Effect.gen(function* () {
            const memory = yield* MemoryBroker.MemoryBroker
            yield* memory.createTopic("orders", { partitions: 2 })
            yield* append("orders", 0, ["bad", "behind"])
            yield* append("orders", 1, ["other"])
            const handled: Array<string | null> = []
            const app = yield* start(binding(bad, (value) => handled.push(value)))
            for (let second = 0; second < 20; second++) yield* advance("1 second")
            assert.includeMembers(handled, ["behind", "other"])
            assert.deepStrictEqual(app.of("SessionCrashed"), [])
            const expected = typeof fate === "string" ? fate : fate(answer)
            const [settled] = app.of("Settled").filter(({ record }) => record.partition === 0 && record.offset === 0n)
            if (expected !== "any") assert.strictEqual(settled?.settlement, expected)
            assert.deepInclude(yield* app.connector.health, { status: "UP", live: true, ready: true })
          }).pipe(Effect.provide(layer(bad)))
        )
      )
    }
  }
})

describe("ruling 86: a listener that is an async function", () => {
  for (const [answer, bad] of Object.entries(answers).filter(([name]) => !name.startsWith("an effect"))) {
    scenario(`subscribe: ${answer}`, () =>
      withoutUnhandled((lines) =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          const app = yield* start(Binding.make("orders", { ...options, handler: () => Effect.void }))
          yield* app.connector.subscribe(bad as () => void)
          yield* append("orders", 0, ["a", "b"])
          yield* advance("5 seconds")
          yield* lateOnes
          assert.lengthOf(app.of("Settled"), 2)
          const told = lines.filter((line) => line.startsWith("A listener threw at event Settled"))
          if (isRejected(answer)) assert.lengthOf(told, 2, lines.join("\n"))
          else assert.isEmpty(told)
          assert.deepInclude(yield* app.connector.health, { status: "UP", live: true, ready: true })
        })
      )
    )
  }
})
