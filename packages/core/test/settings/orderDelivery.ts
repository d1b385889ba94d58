/** A delivery of the binding `billing`, for tests that look at its keys. */
import type { Delivery } from "../../src/Delivery.ts"

export const delivery = (offset: number): Delivery<null, string> => ({
  key: null,
  value: `order ${offset}`,
  record: { topic: "orders", partition: 0, offset: BigInt(offset), timestamp: 0, key: null, value: null, headers: [] },
  headers: [],
  bindingName: "billing",
  deduplicationKey: `orders-0-${offset}`,
  idempotencyKey: `default:orders-0-${offset}@0`,
  tier: 0,
  attempt: 1
})
