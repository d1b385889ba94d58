/** The bearer token that all connections share. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Data, Deferred, Effect, Fiber, Redacted } from "effect"
import { TestClock } from "effect/testing"
import type { Token } from "../../src/internal/connection/options.ts"
import { makeSecrets } from "../../src/internal/connection/secrets.ts"
import { makeTokens } from "../../src/internal/connection/tokens.ts"

class Away extends Data.TaggedError("Away")<{ readonly message: string }> {}

/** A server that issues the tokens `t1`, `t2`, ... with this lifetime. */
const server = (lifeMillis: number | undefined) => {
  const state = { asked: 0, away: false }
  const provider: Effect.Effect<Token, Away> = Effect.gen(function* () {
    state.asked++
    if (state.away) return yield* new Away({ message: "the server is away" })
    const now = yield* Clock.currentTimeMillis
    return {
      value: Redacted.make(`t${state.asked}`),
      ...(lifeMillis !== undefined && { expiresAt: now + lifeMillis })
    }
  })
  const tokens = makeTokens(provider, makeSecrets())
  return { state, tokens, get: Effect.map(tokens.get, ({ value }) => Redacted.value(value)) }
}

describe("tokens", () => {
  it.effect("a token is used for 80 % of its lifetime, and then replaced before it expires", () =>
    Effect.gen(function* () {
      const { state, get } = server(100_000)
      assert.strictEqual(yield* get, "t1")
      yield* TestClock.adjust("79999 millis")
      assert.strictEqual(yield* get, "t1")
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(yield* get, "t2")
      assert.strictEqual(state.asked, 2)
    })
  )

  it.effect("a token of unknown lifetime is requested for each authentication", () =>
    Effect.gen(function* () {
      const { get } = server(undefined)
      assert.deepStrictEqual([yield* get, yield* get], ["t1", "t2"])
      const plain = makeTokens(Effect.succeed(Redacted.make("plain")), makeSecrets())
      assert.strictEqual(Redacted.value((yield* plain.get).value), "plain")
    })
  )

  for (const life of [undefined, 60_000]) {
    it.effect(`a hundred connections at once request one token (lifetime ${life})`, () =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        let asked = 0
        const provider = Effect.gen(function* () {
          asked++
          yield* Deferred.await(gate)
          const value = Redacted.make(`t${asked}`)
          return life === undefined ? value : { value, expiresAt: (yield* Clock.currentTimeMillis) + life }
        })
        const { get } = makeTokens(provider, makeSecrets())
        const waiting = yield* Effect.forkChild(
          Effect.all(
            Array.from({ length: 100 }, () => get),
            { concurrency: "unbounded" }
          )
        )
        yield* TestClock.adjust("1 second")
        yield* Deferred.succeed(gate, undefined)
        const all = yield* Fiber.join(waiting)
        assert.deepStrictEqual([...new Set(all.map(({ value }) => Redacted.value(value)))], ["t1"])
        assert.strictEqual(asked, 1)
      })
    )
  }

  it.effect("a caller that is interrupted leaves the token request to the others", () =>
    Effect.gen(function* () {
      let asked = 0
      const provider = Effect.suspend(() => {
        asked++
        return Effect.as(Effect.sleep("2 seconds"), Redacted.make(`t${asked}`))
      })
      const { get } = makeTokens(provider, makeSecrets())
      const first = yield* Effect.forkChild(get, { startImmediately: true })
      const second = yield* Effect.forkChild(get, { startImmediately: true })
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(first)
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(Redacted.value((yield* Fiber.join(second)).value), "t2")
    })
  )

  it.effect("requests to an unreachable server back off up to 10 seconds; meanwhile callers fail at once", () =>
    Effect.gen(function* () {
      const { state, tokens, get } = server(60_000)
      state.away = true
      const times: Array<number> = []
      for (let millis = 0; millis <= 60_000; millis += 50) {
        const before = state.asked
        const failed = yield* Effect.flip(tokens.get)
        assert.deepStrictEqual([failed.type, failed.detail], ["CREDENTIALS", "the bearer token: the server is away"])
        if (state.asked > before) times.push(millis)
        yield* TestClock.adjust("50 millis")
      }
      const rests = times.slice(1).map((at, index) => at - times[index]!)
      assert.deepStrictEqual(rests, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000, 10_000])
      state.away = false
      yield* TestClock.adjust("10 seconds")
      const token = yield* get
      assert.strictEqual(yield* get, token)
    })
  )

  it.effect("while the server is unreachable the last token is used until a second before it expires", () =>
    Effect.gen(function* () {
      const { state, tokens, get } = server(100_000)
      yield* get
      state.away = true
      yield* TestClock.adjust("98999 millis")
      assert.deepStrictEqual([yield* get, yield* get], ["t1", "t1"])
      assert.strictEqual(state.asked, 2)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual((yield* Effect.flip(tokens.get)).type, "CREDENTIALS")
    })
  )

  it.effect("a token that a broker refused is not used again", () =>
    Effect.gen(function* () {
      const { tokens, get } = server(100_000)
      const refused = yield* tokens.get
      tokens.invalidate(refused)
      assert.strictEqual(yield* get, "t2")
      tokens.invalidate(refused)
      assert.strictEqual(yield* get, "t2")
    })
  )

  it.effect("a provider that hangs fails after 10 seconds", () =>
    Effect.gen(function* () {
      const { get } = makeTokens(Effect.never, makeSecrets())
      const waiting = yield* Effect.forkChild(Effect.flip(get))
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* Fiber.join(waiting)).detail, "the bearer token: not there within 10000 ms")
    })
  )

  it.effect("SEC-01 a provider that gives no token, or one without a time, is a failure, which does not show it", () =>
    Effect.gen(function* () {
      const value = Redacted.make("hunter2")
      const { proxy: revoked, revoke } = Proxy.revocable({}, {})
      revoke()
      const throwing = Object.defineProperty({}, "value", {
        get: () => {
          throw new Error("hunter2")
        }
      })
      const given: ReadonlyArray<readonly [given: unknown, said: string]> = [
        ["hunter2", "string was given, and a Redacted or a Token is expected"],
        [undefined, "undefined was given, and a Redacted or a Token is expected"],
        [{ value: "hunter2" }, "a plain object was given, and a Redacted or a Token is expected"],
        [{ value, expiresAt: "hunter2" }, "its expiresAt is string, and epoch milliseconds are expected"],
        [
          { value, expiresAt: Object.create(null) },
          "its expiresAt is a plain object, and epoch milliseconds are expected"
        ],
        [revoked, "a plain object was given, and a Redacted or a Token is expected"],
        [throwing, "a plain object was given, and a Redacted or a Token is expected"],
        [{ value, expiresAt: Number.NaN }, "its expiresAt is NaN, and epoch milliseconds are expected"]
      ]
      for (const [token, said] of given) {
        const failed = yield* Effect.flip(makeTokens(Effect.succeed(token as Token), makeSecrets()).get)
        assert.deepStrictEqual([failed.type, failed.detail], ["CREDENTIALS", `the bearer token: ${said}`])
      }
    })
  )
})
