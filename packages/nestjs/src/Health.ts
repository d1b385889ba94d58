/**
 * The health of a bus, in the form that Terminus asks for. There is no import of Terminus: any controller may answer with it.
 *
 * ```ts
 * import { EventBusService, readiness } from "@eventbus/nestjs"
 * import { Controller, Get } from "@nestjs/common"
 * import { HealthCheck, HealthCheckService } from "@nestjs/terminus"
 *
 * @Controller("health")
 * export class HealthController {
 *   constructor(
 *     private readonly health: HealthCheckService,
 *     private readonly bus: EventBusService
 *   ) {}
 *
 *   @Get("ready")
 *   @HealthCheck()
 *   ready() {
 *     return this.health.check([() => readiness("kafka", this.bus)])
 *   }
 * }
 * ```
 */
import type { BusHealth, EventBus } from "@eventbus/node"

/** The answer of a health indicator of Terminus. */
export type HealthResult<Key extends string> = Record<
  Key,
  {
    /** Terminus answers 503 where it is `down`. */
    readonly status: "up" | "down"
    /** The status of the bus, which may be `DEGRADED` while it is live. */
    readonly bus: BusHealth["status"]
    /** Everything that is not as it should be, in words, the worst first. */
    readonly reasons: ReadonlyArray<string>
  }
>

/** Up while each consumer consumes and nothing holds it; down before the start, while the bus drains, and while a consumer is paused. Costs no I/O. */
export const readiness = <const Key extends string>(key: Key, bus: Pick<EventBus, "health">): HealthResult<Key> => {
  const health = bus.health()
  return answer(key, health.ready, health)
}

/** Down only where a restart of the process can help. Costs no I/O. */
export const liveness = <const Key extends string>(key: Key, bus: Pick<EventBus, "health">): HealthResult<Key> => {
  const health = bus.health()
  return answer(key, health.live, health)
}

const answer = <Key extends string>(key: Key, isUp: boolean, { status, reasons }: BusHealth): HealthResult<Key> => {
  const result: HealthResult<string>[string] = {
    status: isUp ? "up" : "down",
    bus: status,
    reasons: reasons.map(({ message }) => message)
  }
  // TypeScript gives a computed name the type string.
  return { [key]: result } as HealthResult<Key>
}
