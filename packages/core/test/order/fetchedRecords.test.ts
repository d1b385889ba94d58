/** Records as a real client hands them over: their fields are getters of a class, which a spread leaves out. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Reader } from "../../src/Broker.ts"
import type { ConsumerRecord, Header } from "../../src/ConsumerRecord.ts"
import { LockScan } from "../../src/internal/order/lockScan.ts"
import * as OrderHeaders from "../../src/internal/record/orderHeaders.ts"

const bond = { topic: "orders", partition: 0, clusterId: "c", topicId: undefined, groupId: "billing" }
const key = new TextEncoder().encode("a")

class Fetched implements ConsumerRecord {
  readonly #headers: ReadonlyArray<Header>
  constructor(headers: ReadonlyArray<Header>) {
    this.#headers = headers
  }
  get topic() {
    return "orders.retry-1"
  }
  get partition() {
    return 0
  }
  get offset() {
    return 0n
  }
  get timestamp() {
    return 7
  }
  get timestampType() {
    return "CreateTime" as const
  }
  get transactional() {
    return false
  }
  get compression() {
    return undefined
  }
  get key() {
    return key
  }
  get value() {
    return new Uint8Array(1_000)
  }
  get headers() {
    return this.#headers
  }
}

const readerOf = (record: ConsumerRecord): Reader =>
  ({
    read: () => Effect.succeed({ _tag: "Fetched", topicId: undefined, chunk: { records: [record], nextOffset: 1n } })
  }) as unknown as Reader

describe("a fetched lock", () => {
  it.effect("PKO-01 is found with its key, its time and its headers, and keeps no value", () =>
    Effect.gen(function* () {
      const lock = { kind: "retry", offset: 5n, hop: 1, epoch: 0, next: 6n } as const
      const scan = new LockScan({
        ...{ at: { topic: "orders.retry-1", partition: 0 }, part: 1, from: 0n, epoch: 0, bond },
        groups: { groupId: "billing", adopts: [] },
        isLost: () => false,
        formerPosition: () => undefined
      })
      yield* scan.readTo(readerOf(new Fetched(OrderHeaders.ofLock(bond, lock))), 1n)
      const [found] = scan.best.values()
      assert.deepInclude(found?.lock, { offset: 5n, kind: "retry" })
      assert.deepStrictEqual([found?.record.value, found?.record.timestamp], [null, 7])
      assert.deepStrictEqual(found?.record.key, key)
      assert.strictEqual(found?.record.headers.length, OrderHeaders.ofLock(bond, lock).length)
    })
  )
})
