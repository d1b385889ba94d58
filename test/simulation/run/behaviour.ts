import { Data, Effect, Schema } from "effect"
import type * as Plan from "../scenario/Scenario.ts"
import type { Behaviour, Failing } from "../scenario/Scenario.ts"

export class Transient extends Schema.TaggedError<Transient>()("Transient", {}) {}
export class Unwanted extends Schema.TaggedError<Unwanted>()("Unwanted", {}) {}
export class Harmless extends Schema.TaggedError<Harmless>()("Harmless", {}) {}
export class Alarm extends Schema.TaggedError<Alarm>()("Alarm", {}) {}

export class Busy extends Data.TaggedError("Busy")<{ readonly route: Plan.Route }> {}

export type HandlerError = Transient | Unwanted | Harmless | Alarm | Busy

/** `failure` counts one more failed call and returns the number of failed calls before it. */
export const behave = (behaviour: Behaviour, failure: () => number): Effect.Effect<void, HandlerError> => {
  const failing = (times: number, failed: Effect.Effect<void, HandlerError>) =>
    Effect.suspend(() => (failure() < times ? failed : Effect.void))
  switch (behaviour._tag) {
    case "Fine":
      return pause(behaviour.millis)
    case "Flaky":
      return Effect.andThen(pause(behaviour.millis), failing(behaviour.failures, fail(behaviour.how)))
    case "Busy":
      return Effect.andThen(
        pause(behaviour.millis),
        failing(behaviour.failures, Effect.fail(new Busy({ route: behaviour.route })))
      )
    case "Broken":
      return Effect.andThen(pause(behaviour.millis), fail(behaviour.how))
    case "Rejected":
      return Effect.fail(new Unwanted())
    case "Ignorable":
      return Effect.fail(new Harmless())
    case "Alarming":
      return failing(1, Effect.fail(new Alarm()))
    case "Undecodable":
      return Effect.die(new Error("a handler was called with a value that cannot be read"))
    case "Stuck":
      return failing(behaviour.calls, Effect.never)
    case "Stubborn":
      return Effect.uninterruptible(Effect.sleep(behaviour.millis))
  }
}

const pause = (millis: number): Effect.Effect<void> => (millis === 0 ? Effect.void : Effect.sleep(millis))

const fail = (how: Failing): Effect.Effect<never, Transient> => {
  switch (how) {
    case "fail":
      return Effect.fail(new Transient())
    case "die":
      return Effect.die("a handler died")
    case "throw":
      return Effect.sync(() => {
        throw "a handler threw a string"
      })
    case "interrupt":
      return Effect.interrupt
  }
}
