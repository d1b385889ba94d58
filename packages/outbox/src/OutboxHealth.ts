/** Whether the outbox keeps up: lag in rows and in age, dead events, and whether the database answers. */
import { Context, Duration, Effect, Layer } from "effect"
import { OutboxStore } from "./OutboxStore.ts"

/** The result of one health check. */
export interface HealthReport {
  /** `down`: the database does not answer. `degraded`: the oldest due event is older than `maxAge`. `up`: neither. */
  readonly status: "up" | "degraded" | "down"
  /** Events that are not delivered yet (NEW and RETRY rows). 0 when the database does not answer. */
  readonly pending: number
  /** Events that were given up (DEAD rows). 0 when the database does not answer. */
  readonly dead: number
  /** Age of the oldest due event in milliseconds. 0 when none is due, or the database does not answer. */
  readonly oldestMillis: number
  /** The figures, or the database's error, in words. */
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

/** The health of the outbox in this store. */
export const layer = (options: HealthOptions = {}): Layer.Layer<OutboxHealth, never, OutboxStore> =>
  Layer.effect(
    OutboxHealth,
    Effect.map(OutboxStore, (store) => {
      const maxMillis = Duration.toMillis(Duration.fromInputUnsafe(options.maxAge ?? "1 minute"))
      return OutboxHealth.of({
        check: store.lag.pipe(
          Effect.map((lag): HealthReport => {
            const isLate = lag.oldestMillis > maxMillis
            const detail = `${lag.pending} pending, ${lag.dead} dead, oldest due ${Math.round(lag.oldestMillis)} ms`
            return { ...lag, status: isLate ? "degraded" : "up", detail }
          }),
          Effect.catch((error) =>
            Effect.succeed<HealthReport>({
              status: "down",
              pending: 0,
              dead: 0,
              oldestMillis: 0,
              detail: error.message
            })
          )
        )
      })
    })
  )
