/**
 * Two services that read one topic in groups of their own, with default names, so they share retry and dead letter topics. The number `n` of a record alone decides how
 * each of them has to treat it.
 */
import { Binding, type Delivery, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Data, Effect } from "effect"

export const services = ["billing", "shipping"] as const
export type Service = (typeof services)[number]

/** A delivery to a handler, as the ledger keeps it. */
export interface Call {
  readonly service: Service
  readonly n: number
  /** 0 in the main topic, else the tier. */
  readonly tier: number
  /** The class of the first failure, as the copy tells it: each service fails with classes of its own. */
  readonly failedFirstWith: string | undefined
  readonly handled: boolean
  /** Whether a replay published the record. */
  readonly replayed: boolean
}

/** The instructions of a process, as JSON in the variable TASK. */
export interface Task {
  readonly brokers: ReadonlyArray<string>
  /** The file that it appends each call to. */
  readonly ledger: string
  readonly service: Service
  readonly topic: string
}

class BillingDown extends Data.TaggedError("BillingDown") {}
class ShippingDown extends Data.TaggedError("ShippingDown") {}
class ShippingRefused extends Data.TaggedError("ShippingRefused") {}

export const failureClasses: Readonly<Record<Service, ReadonlyArray<string>>> = {
  billing: ["BillingDown"],
  shipping: ["ShippingDown", "ShippingRefused"]
}

/** The delays of a service's tiers, each with one delivery. Tier 1 of both is one topic, with two delays. */
export const tiers: Readonly<Record<Service, ReadonlyArray<number>>> = { billing: [300, 600, 900], shipping: [500] }

interface Fate {
  /** In the main topic and then in one tier after the other. */
  readonly deliveries: number
  readonly deadLetter: "RETRIES_EXHAUSTED" | "NON_RETRYABLE" | undefined
}

/** Billing needs up to three tiers for three in ten, and gives one in ten up behind them. Shipping needs a tier for one in seven, gives one in seven up behind it, and refuses one in seven at once. */
export const fateOf = (service: Service, n: number): Fate => {
  if (service === "billing") {
    const rest = n % 10
    return rest === 4
      ? { deliveries: 4, deadLetter: "RETRIES_EXHAUSTED" }
      : { deliveries: rest < 4 ? rest + 1 : 1, deadLetter: undefined }
  }
  const rest = n % 7
  if (rest === 1) return { deliveries: 1, deadLetter: "NON_RETRYABLE" }
  if (rest === 2) return { deliveries: 2, deadLetter: "RETRIES_EXHAUSTED" }
  return { deliveries: rest === 3 ? 2 : 1, deadLetter: undefined }
}

/** The class that a handler fails with, or undefined when it handles the record. */
const failureOf = (service: Service, n: number, tier: number): "Down" | "Refused" | undefined => {
  const { deliveries, deadLetter } = fateOf(service, n)
  if (deadLetter === "NON_RETRYABLE") return "Refused"
  return tier + 1 < deliveries || deadLetter !== undefined ? "Down" : undefined
}

const text = (value: Uint8Array | null | undefined) => (value ? new TextDecoder().decode(value) : undefined)

/** The binding of a service. It reports each call before it succeeds or fails, and handles every record that it gets replayed. Process deaths show soon, and each service comes back in another way: as a new member, or under its former name. */
export const binding = (service: Service, topic: string, report: (call: Call) => void, autoStartup = true) => {
  const settings = {
    autoStartup,
    ...{ topic, groupId: groupOf(service, topic), value: Serde.string },
    ...{ sessionTimeout: 3_000, heartbeatInterval: 500, staticMembership: service === "shipping" },
    retry: RetryPolicy.tiered({
      blocking: { maxAttempts: 1 },
      tiers: tiers[service].map((delay) => ({ delay, maxAttempts: 1 }))
    })
  }
  const call = ({ value, tier, record }: Delivery.Delivery<unknown, string>) => {
    const replayed = tier === 0 && record.headers.some(({ key }) => key === "x-eventbus-replay-group")
    const failure = replayed ? undefined : failureOf(service, Number(value), tier)
    const failedFirstWith = text(record.headers.find(({ key }) => key === "x-eventbus-tier0-exception")?.value)
    report({ service, n: Number(value), tier, failedFirstWith, handled: failure === undefined, replayed })
    return failure
  }
  if (service === "billing") {
    return Binding.make(service, {
      ...settings,
      handler: (delivery) => (call(delivery) === undefined ? Effect.void : Effect.fail(new BillingDown())),
      onError: { BillingDown: Route.retry }
    })
  }
  return Binding.make(service, {
    ...settings,
    handler: (delivery) => {
      const failure = call(delivery)
      if (failure === undefined) return Effect.void
      return Effect.fail(failure === "Refused" ? new ShippingRefused() : new ShippingDown())
    },
    onError: { ShippingDown: Route.retry, ShippingRefused: Route.deadLetter() }
  })
}

/** Groups have names of their own in each run; topics and everything that is derived from them have default names. */
export const groupOf = (service: Service, topic: string): string => `${service}-of-${topic}`
