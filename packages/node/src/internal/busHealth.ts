/** The health of a bus: that of its consumers, and beside it that of its outbox. */
import { Health } from "@eventbus/core"
import type { BusHealth } from "../BusHealth.ts"
import type { BusOutboxState } from "../BusOutbox.ts"

/**
 * A bus without consumers, which only publishes, is ready once it has started, and its outbox is. Nothing about an outbox makes a bus dead: no restart would help.
 */
export const busHealth = (
  consumers: Health.Health,
  hasConsumers: boolean,
  outbox: BusOutboxState["Service"] | undefined
): BusHealth => {
  const reasons = consumers.reasons.map((reason) => ({ type: reason._tag, message: Health.describe(reason) }))
  const { status, live } = consumers
  const ready = hasConsumers ? consumers.ready : reasons.length === 0
  const own = outbox?.reason()
  if (own === undefined) return { status, live, ready, reasons }
  const isDown = own.type === "OutboxDown"
  return {
    status: isDown ? "DOWN" : status === "UP" ? "DEGRADED" : status,
    live,
    ready: ready && !isDown,
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
