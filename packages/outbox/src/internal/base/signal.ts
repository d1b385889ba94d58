/** A wake-up that is remembered until somebody waits for it. One waiter. */
import { Effect } from "effect"

export interface Signal {
  readonly raise: () => void
  /** Waits for the next `raise`, or returns at once when one came since the last wait. */
  readonly await: Effect.Effect<void>
}

export const makeSignal = (): Signal => {
  let raised = false
  let waiter: (() => void) | undefined
  return {
    raise: () => {
      if (waiter === undefined) raised = true
      else waiter()
    },
    await: Effect.callback<void>((resume) => {
      if (raised) {
        raised = false
        return resume(Effect.void)
      }
      waiter = () => {
        waiter = undefined
        resume(Effect.void)
      }
      return Effect.sync(() => {
        waiter = undefined
      })
    })
  }
}
