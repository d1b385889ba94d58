import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Duration, Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import type { Delivery } from "../../src/Delivery.ts"
import {
  type Claim,
  IdempotencyStore,
  IdempotencyStoreError,
  layerMemory,
  type Options
} from "../../src/IdempotencyStore.ts"
import { AlreadyHandled, idempotent, isAlreadyHandled } from "../../src/internal/settings/idempotent.ts"
import { delivery } from "./orderDelivery.ts"

type Store = IdempotencyStore["Service"]

const lease = Duration.minutes(1)
const retention = Duration.hours(24)
const memory = (capacity = 100_000) =>
  Effect.map(Layer.build(layerMemory({ capacity })), (context) => Context.get(context, IdempotencyStore))

const wrap = <A, E>(
  store: Store,
  handler: (delivery: Delivery<null, string>) => Effect.Effect<A, E>,
  options: Options<null, string> & { readonly groupId?: string } = {}
) => idempotent({ groupId: "billing", topic: "orders", ...options }, store, handler)

const failing = (operation: IdempotencyStoreError["operation"]) =>
  Effect.fail(new IdempotencyStoreError({ store: "broken", operation, retryable: true, cause: new Error("down") }))

const tagOf = (claim: Claim) => claim._tag
const started = (claim: Claim) => {
  assert(claim._tag === "Started")
  return claim.token
}

describe("a handler that runs once per key", () => {
  it.effect("OFF-19 OFF-21 a handled record is not handled again", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const handle = wrap(yield* memory(), ({ value }) => Effect.sync(() => seen.push(value)))
      yield* handle(delivery(1))
      const again = yield* Effect.exit(handle(delivery(1)))
      assert(Exit.isFailure(again) && isAlreadyHandled(again.cause))
      yield* handle(delivery(2))
      assert.deepStrictEqual(seen, ["order 1", "order 2"])
    })
  )

  it.effect("OFF-21 failure, defect and interruption free the key: the record is handled again", () =>
    Effect.gen(function* () {
      const store = yield* memory()
      const outcomes = [Effect.fail("typed"), Effect.die("defect"), Effect.interrupt]
      for (const [offset, outcome] of outcomes.entries()) {
        const exit = yield* Effect.exit(wrap(store, () => outcome)(delivery(offset)))
        assert.deepStrictEqual(exit, yield* Effect.exit(outcome))
        assert.strictEqual(yield* wrap(store, () => Effect.succeed("handled"))(delivery(offset)), "handled")
      }
      const running = yield* Effect.forkChild(wrap(store, () => Effect.never)(delivery(7)), { startImmediately: true })
      assert.strictEqual(tagOf(yield* store.begin("billing:default:orders-0-7@0", { lease })), "InProgress")
      yield* Fiber.interrupt(running)
      assert.strictEqual(yield* wrap(store, () => Effect.succeed("handled"))(delivery(7)), "handled")
    })
  )

  it.effect("a handler that throws before it gives an effect frees the key", () =>
    Effect.gen(function* () {
      const store = yield* memory()
      const thrown = wrap(store, (): Effect.Effect<void> => {
        throw new Error("thrown")
      })
      assert(Exit.isFailure(yield* Effect.exit(thrown(delivery(1)))))
      assert.strictEqual(yield* wrap(store, () => Effect.succeed("handled"))(delivery(1)), "handled")
    })
  )

  it.effect("a key in progress is not done: the caller waits for the other claim's end and follows its outcome", () =>
    Effect.gen(function* () {
      const store = yield* memory()
      for (const [offset, succeeds] of [true, false].entries()) {
        const gate = yield* Deferred.make<void, string>()
        const first = yield* Effect.forkChild(Effect.exit(wrap(store, () => Deferred.await(gate))(delivery(offset))), {
          startImmediately: true
        })
        let calls = 0
        const second = yield* Effect.forkChild(
          Effect.exit(wrap(store, () => Effect.sync(() => ++calls))(delivery(offset))),
          { startImmediately: true }
        )
        yield* TestClock.adjust("10 minutes")
        assert.isUndefined(second.pollUnsafe())
        yield* succeeds ? Deferred.succeed(gate, undefined) : Deferred.fail(gate, "failed")
        yield* Fiber.join(first)
        yield* TestClock.adjust("1 second")
        const exit = yield* Fiber.join(second)
        assert.strictEqual(calls, succeeds ? 0 : 1)
        assert.strictEqual(Exit.isFailure(exit) && isAlreadyHandled(exit.cause), succeeds)
      }
    })
  )

  it.effect("waiting for another's claim ends at once when it is interrupted", () =>
    Effect.gen(function* () {
      const store = yield* memory()
      yield* store.begin("billing:default:orders-0-1@0", { lease })
      const waiting = yield* Effect.forkChild(wrap(store, () => Effect.void)(delivery(1)), { startImmediately: true })
      yield* Fiber.interrupt(waiting)
      assert.strictEqual(tagOf(yield* store.begin("billing:default:orders-0-1@0", { lease })), "InProgress")
    })
  )

  it.effect("a claim whose owner is gone is taken over when its lease expires", () =>
    Effect.gen(function* () {
      const store = yield* memory()
      yield* store.begin("billing:default:orders-0-1@0", { lease })
      const running = yield* Effect.forkChild(wrap(store, () => Effect.succeed("handled"))(delivery(1)))
      yield* TestClock.adjust("59 seconds")
      assert.isUndefined(running.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Fiber.join(running), "handled")
    })
  )

  it.effect("a handler that runs longer than the lease keeps its claim, and renews no longer than it runs", () =>
    Effect.gen(function* () {
      const store = yield* memory()
      const handling = yield* Effect.forkChild(wrap(store, () => Effect.sleep("1 hour"))(delivery(1)))
      for (let minute = 0; minute < 59; minute++) {
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(tagOf(yield* store.begin("billing:default:orders-0-1@0", { lease })), "InProgress")
      }
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(handling)
      assert.strictEqual(tagOf(yield* store.begin("billing:default:orders-0-1@0", { lease })), "Done")
      yield* TestClock.adjust(retention)
      assert.strictEqual(tagOf(yield* store.begin("billing:default:orders-0-1@0", { lease })), "Started")
    })
  )

  it.effect("the lease is not renewed once the handler has ended, however it ended", () =>
    Effect.gen(function* () {
      const store = yield* memory()
      let renewals = 0
      const counted: Store = {
        ...store,
        renew: (...args) => Effect.tap(store.renew(...args), () => Effect.sync(() => renewals++))
      }
      const handle = wrap(counted, ({ record }) =>
        Effect.andThen(Effect.sleep("30 seconds"), record.offset > 0n ? Effect.fail("no") : Effect.void)
      )
      // One fiber for both, as in a partition: it outlives its deliveries.
      yield* Effect.forkChild(
        Effect.forEach([0, 1], (offset) => Effect.exit(handle(delivery(offset)))).pipe(Effect.andThen(Effect.never))
      )
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(renewals, 2)
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(renewals, 2)
    })
  )

  it.effect("two groups do not share keys; a custom key is used", () =>
    Effect.gen(function* () {
      const store = yield* memory()
      const groups: Array<string> = []
      for (const groupId of ["billing", "shipping", "billing"]) {
        const handle = wrap(store, () => Effect.sync(() => groups.push(groupId)), { groupId, key: () => "order 9" })
        yield* Effect.exit(handle(delivery(groups.length)))
      }
      assert.deepStrictEqual(groups, ["billing", "shipping"])
      const thrown = wrap(store, () => Effect.void, {
        key: () => {
          throw new Error("no key")
        }
      })
      assert(Exit.isFailure(yield* Effect.exit(thrown(delivery(1)))))
    })
  )

  it.effect("a store that cannot begin fails the record with a typed error, before its handler ran", () =>
    Effect.gen(function* () {
      const store = yield* memory()
      let calls = 0
      const handler = () => Effect.sync(() => void calls++)
      const refused = yield* Effect.flip(wrap({ ...store, begin: () => failing("begin") }, handler)(delivery(1)))
      assert.instanceOf(refused, IdempotencyStoreError)
      const hanging = yield* Effect.forkChild(
        Effect.flip(wrap({ ...store, begin: () => Effect.never }, handler)(delivery(1)))
      )
      yield* TestClock.adjust("5 seconds")
      const error = yield* Fiber.join(hanging)
      assert(!(error instanceof AlreadyHandled))
      assert.deepInclude({ ...error }, { store: "memory", operation: "begin", retryable: true })
      assert.strictEqual(calls, 0)
    })
  )

  it.effect("completing is tried again; when the store never succeeds, the success stands", () =>
    Effect.gen(function* () {
      const store = yield* memory()
      let refusals = 2
      const flaky: Store = {
        ...store,
        complete: (token, options) =>
          Effect.suspend(() => (refusals-- > 0 ? failing("complete") : store.complete(token, options)))
      }
      const recovering = yield* Effect.forkChild(wrap(flaky, () => Effect.succeed("handled"))(delivery(1)))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Fiber.join(recovering), "handled")
      assert.strictEqual(tagOf(yield* store.begin("billing:default:orders-0-1@0", { lease })), "Done")

      for (const [offset, complete] of [
        () => failing("complete"),
        () => Effect.never,
        () => Effect.die("bug")
      ].entries()) {
        const handling = yield* Effect.forkChild(
          wrap({ ...store, complete }, () => Effect.succeed("handled"))(delivery(10 + offset))
        )
        yield* TestClock.adjust("5 seconds")
        assert.strictEqual(yield* Fiber.join(handling), "handled")
        // Not done: a record that is delivered again is handled again.
        yield* TestClock.adjust(lease)
        assert.strictEqual(tagOf(yield* store.begin(`billing:orders-0-${10 + offset}`, { lease })), "Started")
      }
    })
  )

  it.effect("a store that hangs on abandon holds an interrupted record for no longer than 5 seconds", () =>
    Effect.gen(function* () {
      const store = yield* memory()
      const abandon = () => Effect.uninterruptible(Effect.never)
      const handling = yield* Effect.forkChild(wrap({ ...store, abandon }, () => Effect.never)(delivery(1)), {
        startImmediately: true
      })
      const interrupting = yield* Effect.forkChild(Fiber.interrupt(handling), { startImmediately: true })
      yield* TestClock.adjust("4999 millis")
      assert.isUndefined(interrupting.pollUnsafe())
      yield* TestClock.adjust("1 milli")
      yield* Fiber.join(interrupting)
    })
  )

  it.effect("when interrupted while the store answers, the granted claim is released", () =>
    Effect.gen(function* () {
      const store = yield* memory()
      let calls = 0
      const slow: Store = {
        ...store,
        begin: (key, options) => Effect.tap(store.begin(key, options), Effect.sleep("1 second"))
      }
      const handling = yield* Effect.forkChild(wrap(slow, () => Effect.sync(() => void calls++))(delivery(1)), {
        startImmediately: true
      })
      const interrupting = yield* Effect.forkChild(Fiber.interrupt(handling), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(interrupting)
      assert.strictEqual(calls, 0)
      assert.strictEqual(tagOf(yield* store.begin("billing:default:orders-0-1@0", { lease })), "Started")
    })
  )

  it.effect("50 deliveries of one key at once, any of which may fail: one handler at a time, one success", () =>
    Effect.gen(function* () {
      const store = yield* memory()
      let running = 0
      let most = 0
      let successes = 0
      let calls = 0
      const handle = wrap(store, () =>
        Effect.gen(function* () {
          most = Math.max(most, ++running)
          yield* Effect.sleep("100 millis")
          running--
          if (++calls < 20) return yield* Effect.fail("not yet")
          successes++
        })
      )
      const all = yield* Effect.forkChild(
        Effect.forEach(Array.from({ length: 50 }), () => Effect.exit(handle(delivery(1))), { concurrency: "unbounded" })
      )
      yield* TestClock.adjust("10 minutes")
      const exits = yield* Fiber.join(all)
      const skipped = exits.filter((exit) => Exit.isFailure(exit) && isAlreadyHandled(exit.cause))
      assert.deepStrictEqual(
        { most, successes, calls, skipped: skipped.length },
        { most: 1, successes: 1, calls: 20, skipped: 30 }
      )
    })
  )
})

describe("the store in memory", () => {
  it.effect("OFF-20 ruling 54 forgets the key completed longest ago, and never one in progress", () =>
    Effect.gen(function* () {
      const store = yield* memory(3)
      const begin = (key: string) => store.begin(key, { lease })
      const tags = (keys: ReadonlyArray<string>) =>
        Effect.map(Effect.forEach(keys, begin), (claims) => claims.map(tagOf))
      const [a, b, c] = [yield* begin("a"), yield* begin("b"), yield* begin("c")].map(started)
      yield* store.complete(b!, { retention })
      yield* store.complete(a!, { retention })
      const d = started(yield* begin("d"))
      assert.deepStrictEqual(yield* tags(["a", "c", "d"]), ["Done", "InProgress", "InProgress"])
      const b2 = started(yield* begin("b"))
      assert.deepStrictEqual(yield* tags(["b", "c", "d"]), ["InProgress", "InProgress", "InProgress"])
      started(yield* begin("beyond the capacity"))
      for (const token of [b2, c!, d]) assert.isTrue(yield* store.complete(token, { retention }))
      assert.deepStrictEqual(yield* tags(["d", "c"]), ["Done", "Done"])
    })
  )

  it.effect(
    "OFF-20 with many more keys than its capacity it keeps exactly the newest, each for its own retention",
    () =>
      Effect.gen(function* () {
        const store = yield* memory(100)
        for (let n = 0; n < 5_000; n++) {
          const hours = n % 2 === 0 ? 1 : 24
          yield* store.complete(started(yield* store.begin(`key ${n}`, { lease })), {
            retention: Duration.hours(hours)
          })
        }
        const tag = (n: number) => Effect.map(store.begin(`key ${n}`, { lease }), tagOf)
        for (let n = 4_900; n < 5_000; n++) assert.strictEqual(yield* tag(n), "Done")
        yield* TestClock.adjust("1 hour")
        for (let n = 4_901; n < 5_000; n += 2) assert.strictEqual(yield* tag(n), "Done")
        assert.strictEqual(yield* tag(4_998), "Started")
        assert.strictEqual(yield* tag(4_899), "Started")
      })
  )

  it.effect("a key that was forgotten and handled again counts as the newest", () =>
    Effect.gen(function* () {
      const store = yield* memory(3)
      const handled = Effect.fnUntraced(function* (key: string, keep: Duration.Duration) {
        yield* store.complete(started(yield* store.begin(key, { lease })), { retention: keep })
      })
      yield* handled("long", retention)
      yield* handled("twice", Duration.minutes(1))
      yield* TestClock.adjust("1 minute")
      for (const key of ["twice", "b", "c"]) yield* handled(key, retention)
      for (const key of ["twice", "b", "c"]) assert.strictEqual(tagOf(yield* store.begin(key, { lease })), "Done")
      assert.strictEqual(tagOf(yield* store.begin("long", { lease })), "Started")
    })
  )

  it.effect("OFF-20 agrees with a model that forgets keys only by time", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), (steps) =>
          Effect.runPromise(Effect.scoped(followsTheModel(steps)).pipe(Effect.provide(TestClock.layer())))
        )
      )
    )
  )
})

type Step = readonly ["begin" | "complete" | "abandon" | "renew" | "wait", number]

/** The number is a key of three, a claim that was given before, or seconds. */
const step: fc.Arbitrary<Step> = fc.tuple(
  fc.constantFrom("begin", "begin", "complete", "abandon", "renew", "wait"),
  fc.nat({ max: 40 })
)

const followsTheModel = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>) {
  const store = yield* memory()
  const owners = new Map<string, { readonly id: string | undefined; readonly until: number }>()
  const given: Array<{ readonly key: string; readonly id: string }> = []
  let now = 0
  for (const [what, n] of steps) {
    if (what === "wait") {
      now += n * 1_000
      yield* TestClock.adjust(n * 1_000)
    } else if (what === "begin") {
      const key = `key ${n % 3}`
      const owner = owners.get(key)
      const claim = yield* store.begin(key, { lease })
      const held = owner !== undefined && owner.until > now
      assert.strictEqual(claim._tag, held ? (owner.id === undefined ? "Done" : "InProgress") : "Started")
      if (claim._tag !== "Started") continue
      assert.isFalse(given.some(({ id }) => id === claim.token.id))
      given.push(claim.token)
      owners.set(key, { id: claim.token.id, until: now + 60_000 })
    } else if (given.length > 0) {
      const token = given[n % given.length]!
      const owner = owners.get(token.key)
      const held = owner !== undefined && owner.id === token.id && owner.until > now
      const did =
        what === "abandon"
          ? store.abandon(token)
          : what === "renew"
            ? store.renew(token, { lease })
            : store.complete(token, { retention })
      assert.strictEqual(yield* did, held)
      if (!held) continue
      if (what === "abandon") owners.delete(token.key)
      else if (what === "renew") owners.set(token.key, { id: token.id, until: now + 60_000 })
      else owners.set(token.key, { id: undefined, until: now + 86_400_000 })
    }
  }
})
