/**
 * The contract of `MessageBroker` as tests of vitest: a behaviour counts as a broker's when its outcome passes. It runs in memory, on Kafka and on RabbitMQ alike.
 */
import { describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { batches } from "./contract/batches.ts"
import { DeadLetters, type Outcome, type StoredLetter } from "./contract/harness.ts"
import { retries } from "./contract/retries.ts"
import { sending } from "./contract/sending.ts"
import { stopping } from "./contract/stopping.ts"
import type { Capability, MessageBroker } from "./MessageBroker.ts"

export { DeadLetters, type Outcome, type StoredLetter }

/** Options of `suite`. */
export interface Options<E> {
  /** The broker under test, and its dead letters: on a live clock all outcomes share it and run concurrently. */
  readonly layer: Layer.Layer<MessageBroker | DeadLetters, E>
  /** A clock that jumps to the next sleep, such as `VirtualClock.layer` of `@eventbus/testkit`: each outcome then has a broker of its own. Default: the real clock. */
  readonly clock?: Layer.Layer<never>
  /** The abilities of the broker beyond sending and consuming: outcomes that need more are skipped. */
  readonly capabilities: ReadonlyArray<Capability>
}

/** All outcomes, grouped by behaviour. */
const outcomes: Readonly<Record<string, ReadonlyArray<Outcome>>> = { sending, retries, batches, stopping }

/** Registers the contract as tests of vitest. */
export const suite = <E>(name: string, { layer, clock, capabilities }: Options<E>): void => {
  const missing = ({ needs }: Outcome): boolean => needs !== undefined && !capabilities.includes(needs)
  if (clock === undefined) {
    it.layer(layer, { concurrent: true, excludeTestServices: true, timeout: "60 seconds" })(name, (it) => {
      for (const [behaviour, list] of Object.entries(outcomes)) {
        for (const outcome of list) {
          it.effect.skipIf(missing(outcome))(`${behaviour}: ${outcome.title}`, () => outcome.run, 60_000)
        }
      }
    })
    return
  }
  describe(name, () => {
    for (const [behaviour, list] of Object.entries(outcomes)) {
      describe(behaviour, () => {
        for (const outcome of list) {
          it.effect.skipIf(missing(outcome))(outcome.title, () =>
            outcome.run.pipe(Effect.scoped, Effect.provide(Layer.provideMerge(layer, clock)))
          )
        }
      })
    }
  })
}
