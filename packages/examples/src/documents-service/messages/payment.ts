/** An event of a payment or a subscription. */
import { type BigDecimal, DateTime, Effect, Schema } from "effect"

export const PaymentEventType = Schema.Literals([
  "PAYMENT_INITIATED",
  "PAYMENT_SUCCEEDED",
  "PAYMENT_FAILED",
  "PAYMENT_REFUNDED",
  "SUBSCRIPTION_CREATED",
  "SUBSCRIPTION_RENEWED",
  "SUBSCRIPTION_CANCELLED",
  "SUBSCRIPTION_EXPIRED",
  "INVOICE_PAID",
  "INVOICE_FAILED"
])
export type PaymentEventType = typeof PaymentEventType.Type

export const PaymentProvider = Schema.Literals(["STRIPE", "PAYSTACK", "PAYPAL"])
export type PaymentProvider = typeof PaymentProvider.Type

export class PaymentEventMessage extends Schema.Class<PaymentEventMessage>("PaymentEventMessage")({
  eventType: PaymentEventType,
  paymentId: Schema.NonEmptyString,
  /** The reference of the payment at its provider. */
  providerPaymentId: Schema.NonEmptyString,
  provider: PaymentProvider,
  userId: Schema.NonEmptyString,
  /** Exact, and a text in JSON: 0.1 + 0.2 is 0.3. Absent for a failure. */
  amount: Schema.optionalKey(Schema.BigDecimalFromString),
  /** ISO 4217, such as EUR. Absent for a failure. */
  currency: Schema.optionalKey(Schema.NonEmptyString),
  /** Such as `succeeded` or `failed`. */
  status: Schema.NonEmptyString,
  subscriptionId: Schema.optionalKey(Schema.NonEmptyString),
  metadata: Schema.Record(Schema.String, Schema.String),
  /** When it happened. */
  eventTimestamp: Schema.DateTimeUtcFromString
}) {}

/** Id, reference at the provider, provider and user of a payment. */
export type Payment = readonly [paymentId: string, providerPaymentId: string, provider: PaymentProvider, userId: string]

type Happened = Pick<PaymentEventMessage, "eventType" | "status"> &
  Partial<Pick<PaymentEventMessage, "amount" | "currency" | "subscriptionId" | "metadata">>

const event = ([paymentId, providerPaymentId, provider, userId]: Payment, happened: Happened) =>
  Effect.map(
    DateTime.now,
    (eventTimestamp) =>
      new PaymentEventMessage({
        ...{ paymentId, providerPaymentId, provider, userId, metadata: {}, eventTimestamp },
        ...happened
      })
  )

/** A payment has succeeded. */
export const paymentSucceeded = (
  ...[paymentId, providerPaymentId, provider, userId, amount, currency]: readonly [
    ...payment: Payment,
    amount: BigDecimal.BigDecimal,
    currency: string
  ]
) =>
  event([paymentId, providerPaymentId, provider, userId], {
    ...{ eventType: "PAYMENT_SUCCEEDED", status: "succeeded" },
    ...{ amount, currency }
  })

/** A payment has failed. The reason is in the metadata. */
export const paymentFailed = (
  ...[paymentId, providerPaymentId, provider, userId, failureReason]: readonly [
    ...payment: Payment,
    failureReason: string
  ]
) =>
  event([paymentId, providerPaymentId, provider, userId], {
    ...{ eventType: "PAYMENT_FAILED", status: "failed" },
    metadata: { failureReason }
  })

/** A subscription has begun. */
export const subscriptionCreated = (
  ...[paymentId, providerPaymentId, provider, userId, subscriptionId, amount, currency]: readonly [
    ...payment: Payment,
    subscriptionId: string,
    amount: BigDecimal.BigDecimal,
    currency: string
  ]
) =>
  event([paymentId, providerPaymentId, provider, userId], {
    ...{ eventType: "SUBSCRIPTION_CREATED", status: "succeeded" },
    ...{ subscriptionId, amount, currency }
  })
