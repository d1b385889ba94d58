import { Handler } from "@eventbus/config"
import { type Delivery, Outcome, type Serde } from "@eventbus/core"
import { Effect } from "effect"
import type { OrderMessage } from "./orderMessage.ts"
import { PaymentGateway } from "./paymentGateway.ts"

/** One of three results for each order: success, retry or failure. */
export const handle = Effect.fnUntraced(
  function* ({ value: { bank, amount } }: Delivery.Delivery<Uint8Array | null, OrderMessage>) {
    if (amount <= 0) {
      yield* Effect.logError(`refused: ${amount} cents`)
      return Outcome.failure(new Error(`an order of ${amount} cents`))
    }
    const gateway = yield* PaymentGateway
    return yield* gateway.charge(bank, amount).pipe(
      Effect.andThen(Effect.logInfo(`charged ${amount} cents`)),
      Effect.as(Outcome.success),
      Effect.catchTag("BankUnavailable", (error) =>
        Effect.as(Effect.logWarning(`later: ${error.message}`), Outcome.retry(error))
      )
    )
  },
  // Every log line of a handler has the offset and the retry topic.
  (handled, { value }) => Effect.annotateLogs(handled, { orderId: value.orderId })
)

export const orderMessageHandler = (value: Serde.Serde<OrderMessage>) => Handler.make({ value, handler: handle })
