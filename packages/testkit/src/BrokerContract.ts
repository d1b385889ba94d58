/**
 * The contract of the Broker port as tests. It runs against the in-memory broker and against a real Kafka alike.
 *
 * A capability marks an outcome that a client cannot show. No outcome is left out for another reason.
 */

import { describe, it } from "@effect/vitest"
import type { Broker } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { administration } from "./contract/administration.ts"
import { assignment } from "./contract/assignment.ts"
import { assignmentStrategies } from "./contract/assignmentStrategies.ts"
import { cluster } from "./contract/cluster.ts"
import { copartitioning } from "./contract/copartitioning.ts"
import { errors } from "./contract/errors.ts"
import { fetching } from "./contract/fetching.ts"
import type { Capabilities, Outcome } from "./contract/harness.ts"
import { memberOffsets } from "./contract/memberOffsets.ts"
import { offsets } from "./contract/offsets.ts"
import { pauseAndSeek } from "./contract/pauseAndSeek.ts"
import { publishing } from "./contract/publishing.ts"
import { publishingMany } from "./contract/publishingMany.ts"
import { reading } from "./contract/reading.ts"
import { rebalance } from "./contract/rebalance.ts"
import { staticMembership } from "./contract/staticMembership.ts"
import { transactionalProducers } from "./contract/transactionalProducers.ts"
import { transactions } from "./contract/transactions.ts"
import * as VirtualClock from "./VirtualClock.ts"

export type { Capabilities, Outcome }

/** Options of `suite`. */
export interface Options<E> {
  /** The broker under test. With `clock: "virtual"` every test gets its own; with `"live"` all tests share one cluster and run concurrently. */
  readonly layer: Layer.Layer<Broker.Broker, E>
  /** `virtual` runs each test on a `VirtualClock`; `live` runs on the real clock, with 60 seconds for each test. */
  readonly clock: "virtual" | "live"
  /** Capabilities of the client. Default: `fullCapabilities`. */
  readonly capabilities?: Partial<Capabilities>
}

/** The capabilities of Kafka's own Java client, in the classic protocol. */
export const fullCapabilities: Capabilities = {
  headerOrder: "all",
  staying: "untouched",
  handover: "released",
  staticMembership: "supported",
  assignment: "members"
}

/** All outcomes, grouped by behaviour. */
const outcomes: Readonly<Record<string, ReadonlyArray<Outcome>>> = {
  assignment,
  offsets,
  fetching,
  "pause and seek": pauseAndSeek,
  rebalance,
  reading,
  "assignment strategies": assignmentStrategies,
  copartitioning,
  "static membership": staticMembership,
  publishing: [...publishing, ...publishingMany],
  transactions: [...transactions, ...transactionalProducers, ...memberOffsets],
  administration: [...cluster, ...administration],
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
