/** Whether the outbox keeps up: lag in rows and in age, dead events, and whether the database answers. */
import { Context, Duration, Effect, Layer } from "effect"
import { OutboxStore } from "./OutboxStore.ts"

export interface HealthReport {
  /** `down`: the database does not answer. `degraded`: the oldest due event is older than `maxAge`. */
  readonly status: "up" | "degraded" | "down"
  readonly pending: number
  readonly dead: number
  readonly oldestMillis: number
  readonly detail: string
}

export class OutboxHealth extends Context.Service<
  OutboxHealth,
  {
    /** Reads the lag from the table. Never fails. */
    readonly check: Effect.Effect<HealthReport>
  }
>()("@eventbus/outbox/OutboxHealth") {}

export interface HealthOptions {
  /** Age of the oldest due event from which the outbox counts as degraded. Default 1 minute. */
  readonly maxAge?: Duration.Input
}

export const layer = (options: HealthOptions = {}): Layer.Layer<OutboxHealth, never, OutboxStore> =>
  Layer.effect(
    OutboxHealth,
    Effect.map(OutboxStore, (store) => {
      const maxMillis = Duration.toMillis(Duration.fromInputUnsafe(options.maxAge ?? "1 minute"))
      return OutboxHealth.of({
        check: store.lag.pipe(
          Effect.map((lag): HealthReport => {
            const late = lag.oldestMillis > maxMillis
            const detail = `${lag.pending} pending, ${lag.dead} dead, oldest due ${Math.round(lag.oldestMillis)} ms`
            return { ...lag, status: late ? "degraded" : "up", detail }
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
