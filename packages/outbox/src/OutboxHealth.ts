/** Whether the outbox keeps up: lag in rows and in age, dead events, and whether the database answers. */
import { Ranges, UserFunction } from "@eventbus/core"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { failureOf } from "./internal/base/failureText.ts"
import { type Monitor, monitorOf, type Problem } from "./internal/base/monitor.ts"
import { problemsOf, refuse } from "./internal/base/options.ts"
import * as OutboxRanges from "./OutboxRanges.ts"
import { OutboxStore } from "./OutboxStore.ts"

export type { Problem, ProblemSource } from "./internal/base/monitor.ts"

/** The result of one health check. */
export interface HealthReport {
  /**
   * `down`: the database does not answer, or not within five seconds. `degraded`: the oldest due event is older than `maxAge`, a fiber of the
   * outbox died within the last minute, events wait for the destination of a listener, or connections take no writes. `up`: none of these.
   */
  readonly status: "up" | "degraded" | "down"
  /** Events that are not delivered yet (NEW and RETRY rows). 0 when the database does not answer. */
  readonly pending: number
  /** Events that were given up (DEAD rows). 0 when the database does not answer. */
  readonly dead: number
  /** Age of the oldest due event in milliseconds. 0 when none is due, or the database does not answer. */
  readonly oldestMillis: number
  /**
   * Everything that failed within the last ten minutes and has not worked since: listeners by `aggregateType:eventType`, destinations,
   * connections that take no writes, other functions of the user, and fibers that died and were started again.
   */
  readonly problems: ReadonlyArray<Problem>
  /** The figures, or the database's error, and the problems, in words. */
  readonly detail: string
}

/** The health of one outbox. */
export class OutboxHealth extends Context.Service<
  OutboxHealth,
  {
    /** Reads the lag from the table, for at most six seconds. Never fails. */
    readonly check: Effect.Effect<HealthReport>
  }
>()("@eventbus/outbox/OutboxHealth") {}

/** Settings of `layer`. */
export interface HealthOptions {
  /** The age of the oldest due event above which the outbox is degraded. Default 1 minute. */
  readonly maxAge?: Duration.Input
}

/** The health of the outbox in this store. Dies with `InvalidOutboxConfig` for wrong settings. */
export const layer = (options: HealthOptions = {}): Layer.Layer<OutboxHealth, never, OutboxStore> =>
  Layer.effect(
    OutboxHealth,
    Effect.map(OutboxStore, (store) => {
      refuse("OutboxHealth", problemsOf(options, { maxAge: OutboxRanges.others.maxAge }))
      const { maxAge = "1 minute" } = options
      const maxMillis = Ranges.millisOf(maxAge)
      const monitor = monitorOf(store)
      return OutboxHealth.of({
        check: Effect.flatMap(Clock.currentTimeMillis, (nowMillis) => {
          const measured = Effect.andThen(probeWrites(store, monitor, nowMillis), store.lag)
          return UserFunction.runBounded("outbox: reading the lag from the database", measured, { timeout }).pipe(
            Effect.map((lag): HealthReport => {
              const problems = monitor.problems(nowMillis)
              const isDegraded = problems.some((problem) => degrades(problem, lag.pending, nowMillis))
              const status = isDegraded || lag.oldestMillis > maxMillis ? "degraded" : "up"
              const figures = `${lag.pending} pending, ${lag.dead} dead, oldest due ${Math.round(lag.oldestMillis)} ms`
              return { ...lag, status, problems, detail: [figures, ...problems.map(inWords)].join("; ") }
            }),
            Effect.catchCause((cause) => {
              const problems = monitor.problems(nowMillis)
              return Effect.succeed<HealthReport>({
                status: "down",
                pending: 0,
                dead: 0,
                oldestMillis: 0,
                problems,
                detail: [failureOf(cause).summary, ...problems.map(inWords)].join("; ")
              })
            })
          )
        })
      })
    })
  )

/** A database that does not answer within this time is down. */
const timeout = "5 seconds"

/** The time within which the outbox itself ends read-only connections, so that the pool makes new ones. */
const renewalMillis = 2000

/** An event that waits for a destination is looked at every ten seconds at most; a delivery that finds out takes as long as the destination's client waits. */
const waitingMillis = 120_000

/**
 * After a refused write: tries a write that changes nothing, since no owner's name is empty. The refusal may have been that of a read-only
 * transaction of the user's, and a quiet outbox has no write of its own that would show it. A write that succeeds clears the problem.
 */
const probeWrites = (store: OutboxStore["Service"], monitor: Monitor, nowMillis: number): Effect.Effect<void> => {
  const refused = monitor.problems(nowMillis).find(({ source }) => source === "database")
  const isDue = refused !== undefined && nowMillis - refused.lastMillis >= renewalMillis
  return isDue ? Effect.ignore(store.releaseClaims("", ["-"])) : Effect.void
}

/**
 * A fiber degrades health for a minute after its death, and a connection for as long as it takes no writes. A destination does so while events wait
 * for it: another node, or an operator, may have ended them.
 */
const degrades = ({ source, lastMillis }: Problem, pending: number, nowMillis: number): boolean => {
  const ageMillis = nowMillis - lastMillis
  if (source === "destination") return pending > 0 && ageMillis < waitingMillis
  return source === "database" || (source === "fiber" && ageMillis < 60_000)
}

const inWords = ({ source, name, count, lastError }: Problem): string =>
  `${source} ${name} failed ${count} times, last: ${lastError}`
