/**
 * The contract of the Broker port as tests: what every implementation must show, on the in-memory broker and on a real Kafka alike.
 *
 * Where an outcome cannot hold for a client, a capability says so; nothing else is left out.
 */

import { describe, it } from "@effect/vitest"
import type { Broker } from "@eventbus/core"
import { Effect, Layer } from "effect"
import { administration } from "./contract/administration.ts"
import { assignment } from "./contract/assignment.ts"
import { errors } from "./contract/errors.ts"
import { fetching } from "./contract/fetching.ts"
import type { Capabilities, Outcome } from "./contract/harness.ts"
import { offsets } from "./contract/offsets.ts"
import { pauseAndSeek } from "./contract/pauseAndSeek.ts"
import { publishing } from "./contract/publishing.ts"
import { rebalance } from "./contract/rebalance.ts"
import { staticMembership } from "./contract/staticMembership.ts"
import { transactions } from "./contract/transactions.ts"
import * as VirtualClock from "./VirtualClock.ts"

export type { Capabilities, Outcome }

export interface Options<E> {
  /** The broker under test. On virtual time every test gets one of its own; live, all share one cluster and run side by side. */
  readonly layer: Layer.Layer<Broker.Broker, E>
  readonly clock: "virtual" | "live"
  /** Default: everything that Kafka's own client can do. */
  readonly capabilities?: Partial<Capabilities>
}

/** Everything that Kafka's own client can do. */
export const fullCapabilities: Capabilities = {
  headerOrder: "all",
  staying: "untouched",
  handover: "released",
  staticMembership: "supported"
}

/** All outcomes, by behaviour. */
export const outcomes: Readonly<Record<string, ReadonlyArray<Outcome>>> = {
  assignment,
  offsets,
  fetching,
  "pause and seek": pauseAndSeek,
  rebalance,
  "static membership": staticMembership,
  publishing,
  transactions,
  administration,
  errors
}

/** Registers the contract as vitest tests. */
export const suite = <E>(name: string, options: Options<E>): void => {
  const capabilities = { ...fullCapabilities, ...options.capabilities }
  const missing = (outcome: Outcome): boolean => outcome.needs !== undefined && !outcome.needs(capabilities)
  if (options.clock === "live") {
    it.layer(options.layer, { concurrent: true, excludeTestServices: true, timeout: "60 seconds" })(name, (it) => {
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
            outcome.run.pipe(Effect.scoped, Effect.provide(Layer.provideMerge(options.layer, VirtualClock.layer)))
          )
        }
      })
    }
  })
}
