import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { RecordPosition } from "../../src/ConsumerRecord.ts"
import { ofCalls, ofSeconds } from "../../src/internal/breaker/callWindow.ts"

const call = fc.record({
  record: fc.option(fc.record({ topic: fc.constantFrom("a", "b"), partition: fc.nat(1), offset: fc.bigInt(0n, 8n) }), {
    nil: undefined
  }),
  failed: fc.boolean(),
  slow: fc.boolean(),
  afterMillis: fc.nat(1_500)
})

interface Entry {
  readonly record: RecordPosition | undefined
  readonly failed: boolean
  readonly slow: boolean
  readonly atMillis: number
}

const sums = (entries: ReadonlyArray<Entry>) => ({
  calls: entries.length,
  failures: entries.filter(({ failed }) => failed).length,
  slow: entries.filter(({ slow }) => slow).length
})

const isSame = (one: RecordPosition | undefined, other: RecordPosition | undefined): boolean =>
  one?.topic === other?.topic && one?.partition === other?.partition && one?.offset === other?.offset

describe("callWindow", () => {
  it("ruling 72 of the calls of one record the newest counts, in a window of calls", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), fc.array(call, { maxLength: 200 }), (size, calls) => {
        const window = ofCalls(size)
        let entries: Array<Entry> = []
        for (const { record, failed, slow } of calls) {
          window.add(failed, slow, 0, record)
          const entry = { record, failed, slow, atMillis: 0 }
          const known = record === undefined ? -1 : entries.findIndex((at) => isSame(at.record, record) && at.failed)
          if (known >= 0) entries[known] = entry
          else entries = [...entries, entry].slice(-size)
          assert.deepStrictEqual({ ...window.counts(0) }, sums(entries))
          assert.strictEqual(
            window.remembers(),
            entries.some((at) => at.record !== undefined && at.failed)
          )
        }
      })
    )
  })

  it("ruling 72 the same in a window of seconds", () => {
    fc.assert(
      fc.property(fc.array(call, { maxLength: 200 }), (calls) => {
        const window = ofSeconds(4)
        let entries: Array<Entry> = []
        let now = 0
        for (const { record, failed, slow, afterMillis } of calls) {
          now += afterMillis
          window.add(failed, slow, now, record)
          const earlier = entries.filter((at) => Math.floor(now / 1_000) - Math.floor(at.atMillis / 1_000) < 4)
          const others = earlier.filter((at) => record === undefined || !isSame(at.record, record) || !at.failed)
          entries = [...others, { record, failed, slow, atMillis: now }]
          assert.deepStrictEqual({ ...window.counts(now) }, sums(entries))
        }
      })
    )
  })
})
