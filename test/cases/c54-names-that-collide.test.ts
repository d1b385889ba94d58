import { assert, describe, it } from "@effect/vitest"
import { Binding, Broker, CurrentTransaction, Hostname, IdempotencyStore, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Duration, Effect } from "effect"
import * as FastCheck from "fast-check"
import * as DerivedNames from "../../packages/core/src/internal/base/derivedNames.ts"
import { idempotent } from "../../packages/core/src/internal/settings/idempotent.ts"
import { advance, append, orders, scenario, start } from "../scenarios/bus.ts"

/** Texts out of few characters, separators among them, so that two tuples often join to one string. */
const part = FastCheck.string({
  unit: FastCheck.constantFrom("a", "b", "-", "_", ".", "/", "%", ":", "5", "f"),
  minLength: 1,
  maxLength: 6
})
const topic = FastCheck.string({ unit: FastCheck.constantFrom("a", "b", "-", "_", "."), minLength: 1, maxLength: 6 })
const number = FastCheck.integer({ min: 0, max: 12 })

const differ = <A extends ReadonlyArray<unknown>>(one: A, other: A, nameOf: (...tuple: A) => string): void => {
  const isSame = JSON.stringify(one) === JSON.stringify(other)
  assert.strictEqual(nameOf(...one) === nameOf(...other), isSame, `${JSON.stringify(one)} and ${JSON.stringify(other)}`)
}

const copier = (name: string, groupId: string, topic: string, done: Array<string>) =>
  Binding.makeTransactional(name, {
    ...{ topic, groupId, value: Serde.string },
    onError: () => Route.retry,
    handler: ({ value }) =>
      Effect.tap(CurrentTransaction.send({ topic: "copies", key: null, value: Buffer.from(value) }), () =>
        Effect.sync(() => done.push(value))
      )
  })

describe("C54 names that collide by joining", () => {
  it("ruling 81 no two tuples of group, topic and partition, or of binding, host and index, give one name", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.tuple(part, topic, number), FastCheck.tuple(part, topic, number), (one, other) => {
        differ(one, other, DerivedNames.transactionalId)
        differ([one[0], one[1]] as const, [other[0], other[1]] as const, DerivedNames.replayTransactionalId)
        assert.notStrictEqual(
          DerivedNames.transactionalId(...one),
          DerivedNames.replayTransactionalId(other[0], other[1])
        )
      }),
      { numRuns: 20_000 }
    )
    FastCheck.assert(
      FastCheck.property(FastCheck.tuple(part, part, number), FastCheck.tuple(part, part, number), (one, other) => {
        differ(one, other, DerivedNames.groupInstanceId)
        assert.match(DerivedNames.groupInstanceId(...one), /^[a-zA-Z0-9._-]+$/)
      }),
      { numRuns: 20_000 }
    )
  })

  scenario("ruling 81 two transactional bindings whose group and topic join to one text do not fence each other", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      for (const name of ["eu-orders", "orders", "copies"]) yield* memory.createTopic(name)
      const [one, other]: [Array<string>, Array<string>] = [[], []]
      const apps = [
        yield* start(copier("one", "billing", "eu-orders", one)),
        yield* start(copier("other", "billing-eu", "orders", other))
      ]
      for (let second = 0; second < 60; second++) {
        for (const name of ["eu-orders", "orders"]) yield* append(name, 0, [String(second)])
        yield* advance("1 second")
      }
      const all = Array.from({ length: 60 }, (_, second) => String(second))
      assert.deepStrictEqual([one, other], [all, all])
      for (const app of apps) assert.deepStrictEqual([...app.of("SessionCrashed"), ...app.of("TransactionFailed")], [])
    })
  )

  scenario("ruling 81 two static members whose binding and host join to one text do not fence each other", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      const done: Array<string> = []
      const member = (name: string, hostname: string) =>
        start(
          Binding.make(name, {
            ...orders,
            staticMembership: true,
            handler: ({ value }) => Effect.sync(() => void done.push(value))
          })
        ).pipe(Effect.provideService(Hostname.Hostname, hostname))
      const apps = [yield* member("a-b", "c"), yield* member("a", "b-c")]
      for (let second = 0; second < 60; second++) {
        for (const partition of [0, 1]) yield* append("orders", partition, [`${partition}/${second}`])
        yield* advance("1 second")
      }
      assert.strictEqual(new Set(done).size, 120)
      assert.strictEqual(done.length, 120)
      for (const app of apps) {
        assert.deepStrictEqual([...app.of("SessionCrashed"), ...app.of("ConsumerFenced")], [])
        assert.isNotEmpty(app.of("Started"))
      }
    })
  )

  scenario("ruling 81 the new owner fences the producer of the first version, and what that left open is aborted", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      for (const name of ["orders", "copies"]) yield* memory.createTopic(name)
      const broker = yield* Broker.Broker
      const first = yield* broker.transactionalProducer({ transactionalId: "billing-orders-0" })
      const zombie = yield* Effect.forkChild(
        Effect.exit(
          first.transaction((tx) =>
            Effect.andThen(
              tx.send({ topic: "copies", key: null, value: Buffer.from("zombie") }),
              Effect.sleep("30 seconds")
            )
          )
        ),
        { startImmediately: true }
      )
      yield* advance("1 second")
      yield* append("orders", 0, ["a"])
      const done: Array<string> = []
      yield* start(copier("orders", "billing", "orders", done))
      yield* advance("2 minutes")
      assert.deepStrictEqual(done, ["a"])
      assert.isDefined(zombie.pollUnsafe())
      const copies = yield* memory.log("copies", 0)
      assert.deepStrictEqual(
        copies.map(({ value }) => Buffer.from(value ?? []).toString()),
        ["a"]
      )
    })
  )

  it.effect(
    "ruling 81 OFF-21 keys of users do not collide over groups, and a key of the first version still counts",
    () =>
      Effect.gen(function* () {
        const store = yield* IdempotencyStore.IdempotencyStore
        const handled: Array<string> = []
        const handle = (groupId: string, key: string, cluster?: string) =>
          Effect.exit(
            idempotent(
              { groupId, topic: "orders", key: () => key, ...(cluster === undefined ? {} : { cluster }) },
              store,
              () => Effect.sync(() => void handled.push(`${groupId} ${key}`))
            )({} as never)
          )
        yield* handle("a", "b:c")
        yield* handle("a:b", "c")
        yield* handle("eu/a", "c")
        yield* handle("a", "c", "eu")
        assert.deepStrictEqual(handled, ["a b:c", "a:b c", "eu/a c", "a c"])
        // The key of the first version, where its parts are certain.
        const claim = yield* store.begin("x:old", { lease: Duration.minutes(1) })
        if (claim._tag === "Started") yield* store.complete(claim.token, { retention: Duration.minutes(1) })
        yield* handle("x", "old")
        assert.notInclude(handled, "x old")
      }).pipe(Effect.provide(IdempotencyStore.layerMemory()))
  )
})
