/** The events of the eight topics, as JSON. */
import { Schema } from "effect"

const Id = Schema.NonEmptyString
/** Nanotons, as a text: JavaScript's numbers are too small. */
const Amount = Schema.String.check(Schema.isPattern(/^[1-9]\d*$/))

export const DealEvent = Schema.Struct({
  eventId: Id,
  dealId: Id,
  type: Schema.Literals(["CREATED", "FUNDED", "DELIVERED", "COMPLETED", "CANCELLED"])
})

export const EscrowCommand = Schema.Struct({
  commandId: Id,
  dealId: Id,
  type: Schema.Literals(["WATCH_DEPOSIT", "PAYOUT", "REFUND"]),
  amount: Amount
})

export const EscrowConfirmation = Schema.Struct({
  commandId: Id,
  dealId: Id,
  type: Schema.Literals(["DEPOSIT", "PAYOUT", "REFUND"]),
  transaction: Id
})

export const DeliveryCommand = Schema.Struct({
  commandId: Id,
  dealId: Id,
  type: Schema.Literals(["PUBLISH", "VERIFY"])
})

export const DeliveryResult = Schema.Struct({
  commandId: Id,
  dealId: Id,
  outcome: Schema.Literals(["PUBLISHED", "VERIFIED", "FAILED"])
})

export const Notification = Schema.Struct({ notificationId: Id, chatId: Id, text: Schema.NonEmptyString })

export const DealDeadline = Schema.Struct({ dealId: Id, step: Id, deadlineMillis: Schema.Int })

export const ReconciliationTrigger = Schema.Struct({ runId: Id })
