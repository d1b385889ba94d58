/** Values that a function of a user's may return in JavaScript, or behind an `any`, and a look for rejections that go unhandled. */
import { assert } from "@effect/vitest"
import { Effect, Logger, Tracer } from "effect"

const rejecting = async (): Promise<never> => {
  throw new Error("the database is away")
}

/** A handler brings a tracer of its own where it provides a layer with one. */
const traced = (answer: () => unknown) =>
  Effect.provideService(
    Effect.flatMap(Effect.yieldNow, () => answer() as never),
    Tracer.Tracer,
    Tracer.make({ span: (options) => Tracer.nativeTracer.span(options) })
  )

/** Each answer is made anew: a Promise is rejected once. */
export const answers: Readonly<Record<string, () => unknown>> = {
  "an async function that rejects": rejecting,
  "an async function that rejects later": () => new Promise((_, reject) => setImmediate(reject, new Error("late"))),
  "an async function that succeeds": async () => undefined,
  "a thenable whose getter throws": () => ({
    // biome-ignore lint/suspicious/noThenProperty: what is tested.
    get then() {
      throw new Error("a hostile getter")
    }
  }),
  "a thenable that answers twice": () => ({
    // biome-ignore lint/suspicious/noThenProperty: what is tested.
    then: (_: unknown, reject: (error: unknown) => void) => {
      reject(new Error("once"))
      reject(new Error("twice"))
    }
  }),
  // biome-ignore lint/suspicious/noThenProperty: what is tested.
  "a thenable that never answers": () => ({ then: () => {} }),
  // biome-ignore lint/suspicious/noThenProperty: what is tested.
  "a thenable whose then rejects": () => ({ then: rejecting }),
  undefined: () => undefined,
  null: () => null,
  number: () => 7,
  object: () => ({}),
  "an object without a prototype": () => Object.create(null),
  "a generator object": () =>
    (function* () {
      yield 1
    })(),
  "an effect that goes on with nothing": () => Effect.flatMap(Effect.yieldNow, () => undefined as never),
  "an effect that goes on with a Promise": () => Effect.flatMap(Effect.yieldNow, () => rejecting() as never),
  "an effect with a tracer of its own that goes on with nothing": () => traced(() => undefined),
  "an effect with a tracer of its own that goes on with an object without a prototype": () =>
    traced(() => Object.create(null)),
  "an effect that succeeds with a Promise": () => Effect.map(Effect.void, (): unknown => rejecting())
}

/** Whether the answer, or what its effect comes to, is a Promise that is rejected. */
export const isRejected = (name: string): boolean =>
  /rejects|answers twice|goes on with a Promise|succeeds with a Promise/.test(name)

/** A rejection goes unhandled behind the microtasks, and a late one comes with the next macrotask. */
const macrotasks = Effect.promise(async () => {
  for (let count = 0; count < 3; count++) await new Promise((resolve) => setImmediate(resolve))
})

/** Runs a test, and asserts that no rejection went unhandled in it. The test gets the log's lines. */
export const withoutUnhandled = <A, E, R>(
  body: (lines: ReadonlyArray<string>) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const lines: Array<string> = []
    const unhandled: Array<unknown> = []
    const onRejection = (error: unknown) => void unhandled.push(error)
    process.on("unhandledRejection", onRejection)
    return body(lines).pipe(
      Effect.tap(() => macrotasks),
      Effect.ensuring(Effect.sync(() => process.off("unhandledRejection", onRejection))),
      Effect.tap(() => Effect.sync(() => assert.deepStrictEqual(unhandled, []))),
      Effect.provide(Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))]))
    )
  })

/** Lets late rejections come. */
export const lateOnes: Effect.Effect<void> = macrotasks
