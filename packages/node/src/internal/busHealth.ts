/** The health of a bus: that of its consumers, and beside it that of its outbox. */
import { Health } from "@eventbus/core"
import type { BusHealth } from "../BusHealth.ts"
import type { BusOutboxState } from "../BusOutbox.ts"

/** A bus without consumers is ready when its outbox is. Nothing about an outbox makes a bus dead: no restart would help. */
export const busHealth = (consumers: Health.Health, outbox: BusOutboxState["Service"] | undefined): BusHealth => {
  const reasons = consumers.reasons.map((reason) => ({ type: reason._tag, message: Health.describe(reason) }))
  const { status, live, ready } = consumers
  if (outbox === undefined) return { status, live, ready, reasons }
  const own = outbox.reason()
  if (own === undefined) return { status, live, ready: reasons.length === 0, reasons }
  const isDown = own.type === "OutboxDown"
  return {
    status: isDown ? "DOWN" : status === "UP" ? "DEGRADED" : status,
    live,
    ready: reasons.length === 0 && !isDown,
    reasons: isDown || status !== "DOWN" ? [own, ...reasons] : [...reasons, own]
  }
}

/** Not ready from the first moment of a stop on: the connector itself closes behind its consumers. */
export const draining = (health: Health.Health): Health.Health => ({
  ...health,
  ready: false,
  status: health.status === "UP" ? "DEGRADED" : health.status,
  reasons: health.reasons.some(({ _tag }) => _tag === "Closing")
    ? health.reasons
    : [{ _tag: "Closing" }, ...health.reasons]
})
