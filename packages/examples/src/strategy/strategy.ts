/**
 * The error handling strategy as a Layer: the ten consumers of `config/error-handling-strategy.yml`. A record that does not decode and one that is `Invalid` go to the dead
 * letter topic at once; one whose work is `Unavailable` is retried as the file says. Money moves once for each command, whatever is delivered again.
 */
import { fileURLToPath } from "node:url"
import { Configuration, Handler, Handlers } from "@eventbus/config"
import { Serde } from "@eventbus/core"
import type { Effect, Schema } from "effect"
import * as Events from "./events.ts"
import { type Invalid, type Unavailable, Workers } from "./workers.ts"

/** The path of the file. */
export const file = fileURLToPath(new URL("../../config/error-handling-strategy.yml", import.meta.url))

type Worker<Event> = (event: Event) => Effect.Effect<void, Invalid | Unavailable>

/** The names that a file uses for the errors of the work. */
const errors = {
  Invalid: ["ValidationException"],
  Unavailable: ["TransientDataAccessException", "ExternalApiException"]
}

const of = <Event>(schema: Schema.Codec<Event, unknown>, select: (workers: Workers["Service"]) => Worker<Event>) =>
  Handler.make({
    value: Serde.json(schema),
    handler: ({ value }) => Workers.use((workers) => select(workers)(value)),
    errors
  })

/** The store remembers each command that is done, for each group. */
const once = <Event extends { readonly commandId: string }>(
  schema: Schema.Codec<Event, unknown>,
  select: (workers: Workers["Service"]) => Worker<Event>
) =>
  Handler.idempotent({
    value: Serde.json(schema),
    handler: ({ value }) => Workers.use((workers) => select(workers)(value)),
    idempotency: { key: ({ value }) => value.commandId },
    errors
  })

/** The handlers, by the names of the bindings. */
export const handlers = Handlers.make({
  "cg-deal-events": of(Events.DealEvent, (workers) => workers["cg-deal-events"]),
  "cg-deposit-watcher": once(Events.EscrowCommand, (workers) => workers["cg-deposit-watcher"]),
  "cg-payout-executor": once(Events.EscrowCommand, (workers) => workers["cg-payout-executor"]),
  "cg-deposit-handler": once(Events.EscrowConfirmation, (workers) => workers["cg-deposit-handler"]),
  "cg-auto-publisher": of(Events.DeliveryCommand, (workers) => workers["cg-auto-publisher"]),
  "cg-delivery-verifier": of(Events.DeliveryCommand, (workers) => workers["cg-delivery-verifier"]),
  "cg-delivery-handler": of(Events.DeliveryResult, (workers) => workers["cg-delivery-handler"]),
  "cg-notification-sender": of(Events.Notification, (workers) => workers["cg-notification-sender"]),
  "cg-deadline-handler": of(Events.DealDeadline, (workers) => workers["cg-deadline-handler"]),
  "cg-reconciliation": of(Events.ReconciliationTrigger, (workers) => workers["cg-reconciliation"])
})

/** The ten consumers. Requires `Workers`, an `IdempotencyStore` that all processes share, and the cluster. */
export const layer = Configuration.layerFile(file, handlers)
