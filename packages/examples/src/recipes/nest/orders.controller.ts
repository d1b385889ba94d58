/** A controller as it was written for the Kafka transport of Nest. */

import { EventBusService } from "@eventbus/nestjs"
import { Controller, HttpCode, Inject, Param, Post } from "@nestjs/common"
import { Ctx, EventPattern, type KafkaContext, Payload } from "@nestjs/microservices"
import { charge, orders } from "../bus.ts"
import { Gateway } from "./gateway.ts"

@Controller()
export class OrdersController {
  @Inject(Gateway) readonly gateway!: Gateway
  @Inject(EventBusService) readonly bus!: EventBusService

  // A strict compiler needs `<string>` with Nest 12, whose types otherwise refuse the second parameter.
  @EventPattern<string>(orders.topic)
  async onOrder(@Payload() order: { readonly id: string }, @Ctx() _context: KafkaContext) {
    await charge(order.id, new AbortController().signal)
    this.gateway.settle(order.id)
  }

  @Post("orders/:id")
  @HttpCode(202)
  async place(@Param("id") id: string) {
    await this.bus.publish(orders, { key: "ann", value: { id } })
  }
}
