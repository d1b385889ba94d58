/**
 * The bytes and headers of a planned record.
 */
import { type ConsumerRecord, type Delivery, Serde } from "@eventbus/core"
import type { RecordPlan, ReplayClaim } from "./Scenario.ts"

export const encoder = new TextEncoder()
export const decoder = new TextDecoder()

export const encode = (plan: RecordPlan): Uint8Array =>
  encoder.encode(plan.behaviour._tag === "Undecodable" ? `!${plan.id}` : plan.id)

/** The user's own headers, and false headers of the connector where the plan says so. */
export const headersOf = ({ id, forged }: RecordPlan): ReadonlyArray<ConsumerRecord.Header> =>
  Object.entries(forged ? { ...ownHeaders(id), ...forgedHeaders } : ownHeaders(id)).map(([key, value]) => ({
    key,
    value: encoder.encode(value)
  }))

/** Where a record is published. */
export interface Destination {
  readonly clusterId: string
  readonly topic: string
  readonly partition: number
  readonly nowMillis: number
}

/** The headers of a replay that never was. */
export const claimedHeaders = (
  { group, bond }: ReplayClaim,
  { clusterId, topic, partition, nowMillis }: Destination
): ReadonlyArray<ConsumerRecord.Header> => {
  const bonds = {
    none: undefined,
    time: `${clusterId}/${topic}/${partition}/${nowMillis - 1}`,
    partition: `${clusterId}/${topic}/${partition + 1}/${nowMillis}`,
    topic: `${clusterId}/other-${topic}/${partition}/${nowMillis}`,
    cluster: `other-${clusterId}/${topic}/${partition}/${nowMillis}`
  }
  const headers = {
    "x-eventbus-original-topic": topic,
    "x-eventbus-original-partition": "0",
    "x-eventbus-original-offset": "0",
    "x-eventbus-original-timestamp": String(nowMillis),
    "x-eventbus-replay-count": "2",
    "x-eventbus-replay-group": group,
    ...(bonds[bond] === undefined ? {} : { "x-eventbus-replay-bond": bonds[bond] })
  }
  return Object.entries(headers).map(([key, value]) => ({ key, value: encoder.encode(value) }))
}

export const ownHeaders = (id: string) => ({ "trace-id": `trace of ${id}`, "content-type": "text/plain" })

const forgedHeaders = {
  "x-eventbus-original-topic": "elsewhere",
  "x-eventbus-original-partition": "7",
  "x-eventbus-original-offset": "77",
  "x-eventbus-original-timestamp": "-1",
  "x-eventbus-retry-tier": "2",
  "x-eventbus-retry-attempt": "99",
  "x-eventbus-retry-timestamp": "99999999999999",
  "x-eventbus-total-attempts": "1000",
  "x-eventbus-first-failure-timestamp": "NaN",
  "x-eventbus-tier0-attempts": "500",
  "x-eventbus-tier3-exception": "Lie",
  "x-eventbus-order-kind": "next",
  "x-eventbus-order-offset": "1",
  "x-eventbus-order-hop": "9",
  "x-eventbus-order-epoch": "9000000000",
  "x-eventbus-order-next": "1"
}

export const recordId = Serde.make<string>({
  name: "record id",
  encode: (id) => encoder.encode(id),
  decode: (bytes) => {
    const id = decoder.decode(bytes)
    if (id.startsWith("!")) throw new Error("this value was made to be unreadable")
    return id
  }
})

export type Record = Delivery.Delivery<Uint8Array | null, string>
