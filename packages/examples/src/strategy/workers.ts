/** The work of the ten consumers on an event, and how it may fail. The application provides it. */
import { Context, type Effect, Schema } from "effect"
import type * as Events from "./events.ts"

/** An event that is wrong in itself: no retry can help. */
export class Invalid extends Schema.TaggedError<Invalid>()("Invalid", { problem: Schema.String }) {
  override get message(): string {
    return this.problem
  }
}

/** A database, a lock or a service of somebody else that may be there again in a moment. */
export class Unavailable extends Schema.TaggedError<Unavailable>()("Unavailable", { what: Schema.String }) {
  override get message(): string {
    return `${this.what} is unavailable`
  }
}

type Worker<Event> = (event: Event) => Effect.Effect<void, Invalid | Unavailable>

/** The work of each group, by the group's name. */
export class Workers extends Context.Service<
  Workers,
  {
    readonly "cg-deal-events": Worker<typeof Events.DealEvent.Type>
    readonly "cg-deposit-watcher": Worker<typeof Events.EscrowCommand.Type>
    readonly "cg-payout-executor": Worker<typeof Events.EscrowCommand.Type>
    readonly "cg-deposit-handler": Worker<typeof Events.EscrowConfirmation.Type>
    readonly "cg-auto-publisher": Worker<typeof Events.DeliveryCommand.Type>
    readonly "cg-delivery-verifier": Worker<typeof Events.DeliveryCommand.Type>
    readonly "cg-delivery-handler": Worker<typeof Events.DeliveryResult.Type>
    readonly "cg-notification-sender": Worker<typeof Events.Notification.Type>
    readonly "cg-deadline-handler": Worker<typeof Events.DealDeadline.Type>
    readonly "cg-reconciliation": Worker<typeof Events.ReconciliationTrigger.Type>
  }
>()("@eventbus/examples/Workers") {}
