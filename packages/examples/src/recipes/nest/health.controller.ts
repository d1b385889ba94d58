/** Probes by Terminus. */

import { EventBusService, liveness, readiness } from "@eventbus/nestjs"
import { Controller, Get, Inject } from "@nestjs/common"
import { HealthCheck, HealthCheckService } from "@nestjs/terminus"

@Controller("health")
export class HealthController {
  @Inject(HealthCheckService) readonly checks!: HealthCheckService
  @Inject(EventBusService) readonly bus!: EventBusService

  @Get("ready")
  @HealthCheck()
  ready() {
    return this.checks.check([() => readiness("kafka", this.bus)])
  }

  @Get("live")
  @HealthCheck()
  live() {
    return this.checks.check([() => liveness("kafka", this.bus)])
  }
}
