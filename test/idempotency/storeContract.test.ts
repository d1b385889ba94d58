import { assert, it } from "@effect/vitest"
import { IdempotencyStore } from "@eventbus/core"
import { Clock, Duration, Effect } from "effect"
import { onStores } from "./stores.ts"

const { IdempotencyStore: Service } = IdempotencyStore

const minute = { lease: Duration.minutes(1) }
/** Long enough to be renewed in time on a busy machine, short enough to be waited for. */
const second = { lease: Duration.seconds(1) }
const past = Duration.millis(1_100)
const retention = { retention: Duration.minutes(1) }

const started = (claim: IdempotencyStore.Claim): IdempotencyStore.Token => {
  assert(claim._tag === "Started", `expected a claim, got ${claim._tag}`)
  return claim.token
}

onStores("idempotency store", ({ layer, time, pass, yielding }) => {
  const test = (
    title: string,
    body: (
      store: IdempotencyStore.IdempotencyStore["Service"]
    ) => Effect.Effect<void, IdempotencyStore.IdempotencyStoreError>
  ) => {
    const run = () => Effect.provide(Service.use(body), layer)
    if (time === "virtual") it.effect(title, run)
    else it.live(title, run)
  }

  test("OFF-20 OFF-21 a key is in progress, then done", (store) =>
    Effect.gen(function* () {
      const before = yield* Clock.currentTimeMillis
      const token = started(yield* store.begin("order 1", minute))
      assert.strictEqual(token.key, "order 1")
      const other = yield* store.begin("order 1", minute)
      const after = yield* Clock.currentTimeMillis
      assert(other._tag === "InProgress")
      // Servers have clocks of their own, so only the difference counts; a second is for rounding and the way to and fro.
      assert.isAtLeast(other.untilMillis, before + 59_000)
      assert.isAtMost(other.untilMillis, after + 60_001)
      assert.isTrue(yield* store.complete(token, retention))
      assert.strictEqual((yield* store.begin("order 1", minute))._tag, "Done")
      started(yield* store.begin("order 2", minute))
    }))

  test("OFF-21 an abandoned key is free at once, under another token", (store) =>
    Effect.gen(function* () {
      const first = started(yield* store.begin("k", minute))
      assert.isTrue(yield* store.abandon(first))
      const again = started(yield* store.begin("k", minute))
      assert.notStrictEqual(again.id, first.id)
      assert.isFalse(yield* store.abandon(first))
      assert.strictEqual((yield* store.begin("k", minute))._tag, "InProgress")
    }))

  test("OFF-20 an expired claim is taken over; its former owner changes nothing", (store) =>
    Effect.gen(function* () {
      const late = started(yield* store.begin("k", second))
      yield* pass(past)
      const owner = started(yield* store.begin("k", minute))
      assert.isFalse(yield* store.complete(late, retention))
      assert.isFalse(yield* store.abandon(late))
      assert.isFalse(yield* store.renew(late, minute))
      assert.strictEqual((yield* store.begin("k", minute))._tag, "InProgress")
      assert.isTrue(yield* store.complete(owner, retention))
      assert.isFalse(yield* store.abandon(late))
      assert.strictEqual((yield* store.begin("k", minute))._tag, "Done")
    }))

  test("an expired claim has ended, even when nobody took it over", (store) =>
    Effect.gen(function* () {
      const late = started(yield* store.begin("k", second))
      yield* pass(past)
      assert.isFalse(yield* store.renew(late, minute))
      assert.isFalse(yield* store.complete(late, retention))
      started(yield* store.begin("k", minute))
    }))

  test("a renewed claim outlives its first lease", (store) =>
    Effect.gen(function* () {
      const token = started(yield* store.begin("k", second))
      assert.isTrue(yield* store.renew(token, minute))
      yield* pass(past)
      assert.strictEqual((yield* store.begin("k", minute))._tag, "InProgress")
      assert.isTrue(yield* store.complete(token, retention))
    }))

  test("a done key is remembered for the retention, not for the lease", (store) =>
    Effect.gen(function* () {
      const long = started(yield* store.begin("long", second))
      const short = started(yield* store.begin("short", minute))
      assert.isTrue(yield* store.complete(long, retention))
      assert.isTrue(yield* store.complete(short, { retention: Duration.seconds(1) }))
      yield* pass(past)
      assert.strictEqual((yield* store.begin("long", minute))._tag, "Done")
      started(yield* store.begin("short", minute))
    }))

  test("a claim ends once", (store) =>
    Effect.gen(function* () {
      const done = started(yield* store.begin("done", minute))
      assert.isTrue(yield* store.complete(done, retention))
      assert.deepStrictEqual(
        [
          yield* store.complete(done, retention),
          yield* store.renew(done, minute),
          yield* store.abandon(done),
          (yield* store.begin("done", minute))._tag
        ],
        [false, false, false, "Done"]
      )
      const failed = started(yield* store.begin("failed", minute))
      assert.isTrue(yield* store.abandon(failed))
      assert.deepStrictEqual(
        [
          yield* store.abandon(failed),
          yield* store.renew(failed, minute),
          yield* store.complete(failed, retention),
          (yield* store.begin("failed", minute))._tag
        ],
        [false, false, false, "Started"]
      )
    }))

  test("OFF-20 ruling 54 keys are compared exactly", (store) =>
    Effect.gen(function* () {
      const long = "x".repeat(10_000)
      const keys = [
        "a",
        "A",
        "a ",
        " a",
        "á",
        "a\u0301",
        "a\0",
        "a\0b",
        "",
        "'; --",
        "a%",
        "a_",
        "done",
        `${long}1`,
        `${long}2`
      ]
      for (const key of keys) assert.isTrue(yield* store.complete(started(yield* store.begin(key, minute)), retention))
      for (const key of keys) assert.strictEqual((yield* store.begin(key, minute))._tag, "Done")
    }))

  test("50 claimers of one key at once: one at a time holds it, until it is done", (store) =>
    Effect.gen(function* () {
      const seen = { holding: 0, most: 0, claims: 0, completed: 0 }
      const claimer = Effect.gen(function* () {
        while (true) {
          const claim = yield* store.begin("k", minute)
          if (claim._tag === "Done") return
          if (claim._tag === "Started") {
            seen.most = Math.max(seen.most, ++seen.holding)
            yield* yielding
            seen.holding--
            if (++seen.claims < 10) assert.isTrue(yield* store.abandon(claim.token))
            else seen.completed += Number(yield* store.complete(claim.token, retention))
          } else yield* yielding
        }
      })
      yield* Effect.all(
        Array.from({ length: 50 }, () => claimer),
        { concurrency: "unbounded", discard: true }
      )
      assert.deepStrictEqual(seen, { holding: 0, most: 1, claims: 10, completed: 1 })
    }))

  test("50 claimers of an expired claim: exactly one takes it over", (store) =>
    Effect.gen(function* () {
      started(yield* store.begin("k", second))
      yield* pass(past)
      const claims = yield* Effect.all(
        Array.from({ length: 50 }, () => store.begin("k", minute)),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(claims.filter((claim) => claim._tag === "Started").length, 1)
      assert.strictEqual(claims.filter((claim) => claim._tag === "InProgress").length, 49)
    }))
})
