/** The dispatcher of an outbox as a part of a bus. `outboxDispatcher` of `@eventbus/node/outbox` makes it. */
import type { Broker, EventBusError } from "@eventbus/core"
import * as Context from "effect/Context"
import type * as Layer from "effect/Layer"

/** Something about the outbox that is not as it should be. */
export interface OutboxReason {
  /** `OutboxDown`: nothing is delivered. `OutboxDegraded`: events come late, or wait for their topic. */
  readonly type: "OutboxDown" | "OutboxDegraded"
  /** The same in words. */
  readonly message: string
}

/** How the dispatcher of a bus is. */
export class BusOutboxState extends Context.Service<
  BusOutboxState,
  {
    /** The worst that is known now, without I/O. Undefined when all is well. */
    readonly reason: () => OutboxReason | undefined
  }
>()("@eventbus/node/BusOutboxState") {}

/** The dispatcher of an outbox, described. A bus that is given it starts it, shows it in its health, and lets it drain behind its consumers. */
export interface BusOutbox {
  /** Checks its options when it is built, and then starts in the background. */
  readonly layer: Layer.Layer<BusOutboxState, EventBusError.ConfigurationValidation, Broker.Broker>
}
