/**
 * A controller gets it with `@Ctx()`. It is a `KafkaContext`, so controllers stay as they are, and it has the abort signal beside it.
 *
 * ```ts
 * import { EventBusContext } from "@eventbus/nestjs/transport"
 * import { Controller } from "@nestjs/common"
 * import { Ctx, EventPattern, Payload } from "@nestjs/microservices"
 *
 * @Controller()
 * export class Orders {
 *   @EventPattern("orders")
 *   async onOrder(@Payload() order: { readonly id: string }, @Ctx() context: EventBusContext) {
 *     await fetch(`https://billing.example/${order.id}`, { method: "POST", signal: context.getSignal() })
 *   }
 * }
 * ```
 */
import type { HandlerContext, KafkaDelivery } from "@eventbus/node"
import { KafkaContext } from "@nestjs/microservices"

/** The arguments of Nest's own context. */
export type ContextArgs = ConstructorParameters<typeof KafkaContext>[0]

/** The context of one call of one handler. Topic, partition and offset are those of the record's first topic, also in a retry topic. */
export class EventBusContext extends KafkaContext {
  readonly #delivery: KafkaDelivery<unknown, unknown>
  readonly #signal: AbortSignal

  /** The transport makes it. */
  constructor(args: ContextArgs, delivery: KafkaDelivery<unknown, unknown>, context: HandlerContext) {
    super(args)
    this.#delivery = delivery
    this.#signal = context.signal
  }

  /** Aborted when the handler should end: see `HandlerContext`. */
  getSignal(): AbortSignal {
    return this.#signal
  }

  /** The record as the connector has it: its bytes, `tier`, `attempt`, `deduplicationKey`. */
  getDelivery(): KafkaDelivery<unknown, unknown> {
    return this.#delivery
  }
}
