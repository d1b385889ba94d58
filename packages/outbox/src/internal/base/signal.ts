/** A signal for one waiting fiber. A raised signal is remembered until the next wait. */
import * as Effect from "effect/Effect"

export interface Signal {
  /** Wakes the waiting fiber, or the next fiber that waits. */
  readonly raise: () => void
  /** Waits for the next `raise`. Returns at once when `raise` was called since the last wait. */
  readonly await: Effect.Effect<void>
}

export const makeSignal = (): Signal => {
  let raised = false
  let resumeWaiter: (() => void) | undefined
  return {
    raise: () => {
      if (resumeWaiter === undefined) raised = true
      else resumeWaiter()
    },
    await: Effect.callback<void>((resume) => {
      if (raised) {
        raised = false
        return resume(Effect.void)
      }
      resumeWaiter = () => {
        resumeWaiter = undefined
        resume(Effect.void)
      }
      return Effect.sync(() => {
        resumeWaiter = undefined
      })
    })
  }
}
