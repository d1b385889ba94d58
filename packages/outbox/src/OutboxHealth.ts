/** Whether the outbox keeps up: lag in rows and in age, dead events, and whether the database answers. */
import { Ranges } from "@eventbus/core"
import { Clock, Context, type Duration, Effect, Layer } from "effect"
import { failureOf } from "./internal/base/failureText.ts"
import { monitorOf, type Problem } from "./internal/base/monitor.ts"
import { problemsOf, refuse } from "./internal/base/options.ts"
import * as OutboxRanges from "./OutboxRanges.ts"
import { OutboxStore } from "./OutboxStore.ts"

export type { Problem, ProblemSource } from "./internal/base/monitor.ts"

/** The result of one health check. */
export interface HealthReport {
  /**
   * `down`: the database does not answer. `degraded`: the oldest due event is older than `maxAge`, a fiber of the outbox died within the
   * last minute, the destination of a listener is down, or a connection takes no writes. `up`: none of these.
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
    /** Reads the lag from the table. Never fails. */
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
          const problems = monitor.problems(nowMillis)
          const isDegraded = problems.some((problem) => degrades(problem, nowMillis))
          return store.lag.pipe(
            Effect.map((lag): HealthReport => {
              const status = isDegraded || lag.oldestMillis > maxMillis ? "degraded" : "up"
              const figures = `${lag.pending} pending, ${lag.dead} dead, oldest due ${Math.round(lag.oldestMillis)} ms`
              return { ...lag, status, problems, detail: [figures, ...problems.map(inWords)].join("; ") }
            }),
            Effect.catchCause((cause) =>
              Effect.succeed<HealthReport>({
                status: "down",
                pending: 0,
                dead: 0,
                oldestMillis: 0,
                problems,
                detail: [failureOf(cause).summary, ...problems.map(inWords)].join("; ")
              })
            )
          )
        })
      })
    })
  )

/** A fiber degrades health for a minute after its death, a destination or a connection for as long as it does not work. */
const degrades = ({ source, lastMillis }: Problem, nowMillis: number): boolean =>
  source === "destination" || source === "database" || (source === "fiber" && nowMillis - lastMillis < 60_000)

const inWords = ({ source, name, count, lastError }: Problem): string =>
  `${source} ${name} failed ${count} times, last: ${lastError}`
