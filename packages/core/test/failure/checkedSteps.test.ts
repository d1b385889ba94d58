/** The steps that an effect of a user's goes on with, in whatever context it runs. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Effect, Exit, Fiber, Tracer } from "effect"
import * as UserFunction from "../../src/UserFunction.ts"

const ownTracer = () => Tracer.make({ span: (options) => Tracer.nativeTracer.span(options) })

const provided: Readonly<Record<string, <A>(effect: Effect.Effect<A>) => Effect.Effect<A>>> = {
  "no tracer of its own": (effect) => effect,
  "a tracer of its own": (effect) => Effect.provideService(effect, Tracer.Tracer, ownTracer()),
  "a tracer in a context of its own": (effect) =>
    Effect.provideContext(effect, Context.make(Tracer.Tracer, ownTracer())),
  "a tracer inside of another one": (effect) =>
    Effect.provideService(Effect.provideService(effect, Tracer.Tracer, ownTracer()), Tracer.Tracer, ownTracer())
}

describe("ruling 86: an effect that goes on with no Effect", () => {
  for (const [name, within] of Object.entries(provided)) {
    it.effect(`${name}: fails with a defect in its place, after its finalizers, and its caller goes on`, () =>
      Effect.gen(function* () {
        const ended: Array<string> = []
        const bad = Effect.flatMap(Effect.yieldNow, (): Effect.Effect<never> => Object.create(null))
        const call = UserFunction.callEffect("charge", () =>
          within(
            Effect.ensuring(
              bad,
              Effect.sync(() => ended.push("its finalizer"))
            )
          )
        )
        const exit = yield* Effect.exit(call)
        ended.push("its caller")
        assert.deepStrictEqual(ended, ["its finalizer", "its caller"])
        assert(Exit.isFailure(exit))
        assert.instanceOf(Cause.squash(exit.cause), UserFunction.NotAnEffect)
      })
    )

    it.effect(`${name}: in a fiber that it forks, too`, () =>
      Effect.gen(function* () {
        const bad = Effect.flatMap(Effect.yieldNow, () => undefined as unknown as Effect.Effect<never>)
        const forked = Effect.flatMap(Effect.forkChild(bad), Fiber.await)
        const exit = yield* UserFunction.callEffect("charge", () => within(forked))
        assert(Exit.isFailure(exit))
        assert.instanceOf(Cause.squash(exit.cause), UserFunction.NotAnEffect)
      })
    )

    it.effect(`${name}: the context of the caller is as it was before the call`, () =>
      Effect.gen(function* () {
        const before = yield* Effect.context()
        yield* UserFunction.callEffect("charge", () => within(Effect.yieldNow))
        yield* Effect.yieldNow
        assert.strictEqual(yield* Effect.context(), before)
      })
    )
  }

  it.effect("a tracer of the user's has its spans", () =>
    Effect.gen(function* () {
      const names: Array<string> = []
      const tracer = Tracer.make({
        span: (options) => {
          names.push(options.name)
          return Tracer.nativeTracer.span(options)
        }
      })
      yield* UserFunction.callEffect("charge", () =>
        Effect.provideService(Effect.withSpan(Effect.yieldNow, "charged"), Tracer.Tracer, tracer)
      )
      assert.deepStrictEqual(names, ["charged"])
    })
  )
})
