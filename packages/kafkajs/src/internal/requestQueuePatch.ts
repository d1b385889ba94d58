/**
 * kafkajs 2.2.4 re-arms a timer of at most 1 ms on every connection for ever, also when there is nothing to send: 4 % of a core
 * for an idle process, and a TimeoutNegativeWarning on Node 24. The timer is only needed while requests wait for a throttle to end.
 */
import { requestQueue } from "./kafkajsInternals.ts"

let applied = false

/** Applied once per process. */
export const patchRequestQueue = (): void => {
  if (applied) return
  applied = true
  requestQueue.prototype.scheduleCheckPendingRequests = function () {
    if (this.throttleCheckTimeoutId !== null || this.pending.length === 0) return
    this.throttleCheckTimeoutId = setTimeout(
      () => {
        this.throttleCheckTimeoutId = null
        this.checkPendingRequests()
      },
      Math.max(10, this.throttledUntil - Date.now())
    )
  }
}
