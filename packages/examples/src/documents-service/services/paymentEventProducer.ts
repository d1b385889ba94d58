/** Publishes what happens to payments, in order for each user. */
import { Effect } from "effect"
import * as Payment from "../messages/payment.ts"
import { payments } from "../topics.ts"
import { send } from "./sending.ts"

const publish = (event: Effect.Effect<Payment.PaymentEventMessage>) =>
  Effect.flatMap(event, (message) => send(message, payments, message.userId))

/** A payment has succeeded. */
export const publishPaymentSucceeded = (...payment: Parameters<typeof Payment.paymentSucceeded>) =>
  publish(Payment.paymentSucceeded(...payment))

/** A payment has failed. */
export const publishPaymentFailed = (...payment: Parameters<typeof Payment.paymentFailed>) =>
  publish(Payment.paymentFailed(...payment))

/** A subscription has begun. */
export const publishSubscriptionCreated = (...payment: Parameters<typeof Payment.subscriptionCreated>) =>
  publish(Payment.subscriptionCreated(...payment))
