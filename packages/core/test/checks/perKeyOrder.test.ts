/** A binding with `orderingMode: "PER_KEY"` refuses some settings beside it. */
import { assert, describe, it } from "@effect/vitest"
import { Binding, type BindingOptions, RetryPolicy } from "@eventbus/core"
import { Effect } from "effect"

const base = { topic: "orders", groupId: "billing", orderingMode: "PER_KEY" } as const
const handler = () => Effect.void
type More = Partial<BindingOptions.Settings<Uint8Array | null, Uint8Array | null>> & {
  readonly listenerType?: "SINGLE" | "BATCH"
}

const problemsOf = (binding: Binding.Binding<unknown>) =>
  (Binding.problems([binding]).get(0) ?? []).map(({ path, found, allowed }) => `${path}: ${found}; ${allowed}`)

const problems = (more: More) => problemsOf(Binding.make("orders", { ...base, handler, ...more }))

describe("the order per key", () => {
  it("takes the defaults, both orders of processing, tiers of one delay each, and `hold`", () => {
    const taken: ReadonlyArray<More> = [
      {},
      { processingOrder: "partition" },
      { processingOrder: "key", maxInFlight: 4, ackMode: "MANUAL" },
      { retry: RetryPolicy.tiered({ tiers: ["1 second", { delay: "1 minute", maxAttempts: 5 }] }) },
      { retry: RetryPolicy.tiered({ tiers: ["1 second", "1 second"], equalDelays: "share" }) },
      { perKey: { onDeadLetter: "hold" } }
    ]
    for (const more of taken) assert.deepStrictEqual(problems(more), [])
  })

  const refusals: ReadonlyArray<readonly [title: string, more: More, problem: string]> = [
    [
      "a policy without tiers",
      { retry: RetryPolicy.blocking() },
      'retry: \'no tiers\'; one retry tier or more with orderingMode "PER_KEY": a failed record waits in a retry topic; "STRICT" keeps the order without tiers'
    ],
    [
      "halt",
      { onExhausted: "halt" },
      'onExhausted: \'halt\'; "dead-letter" with orderingMode "PER_KEY": perKey.onDeadLetter "hold" keeps a record and its key waiting, and the partition goes on'
    ],
    [
      "the order `unordered`",
      { processingOrder: "unordered" },
      'processingOrder: \'unordered\'; "key" or "partition" with orderingMode "PER_KEY": "unordered" handles records of one key at the same time'
    ],
    [
      "listenerType BATCH",
      { listenerType: "BATCH" },
      'listenerType: \'BATCH\'; "SINGLE" with orderingMode "PER_KEY": the records of a batch are acknowledged together'
    ],
    [
      "a group of its own for the tiers",
      { retry: RetryPolicy.tiered({ consumer: "separate" }) },
      'retry.consumer: \'separate\'; "shared" with orderingMode "PER_KEY": two groups do not assign a partition and its retries to the same member'
    ],
    [
      "a tier whose waits grow",
      { retry: RetryPolicy.tiered({ tiers: ["1 second", { delay: "2 seconds", multiplier: 2 }] }) },
      "retry.tiers[1]: 'waits of 2000, 4000, 8000 ms'; one delay for each tier with orderingMode \"PER_KEY\": records that wait differently do not become due in the order of the topic"
    ],
    [
      "a group that the broker assigns",
      { groupProtocol: "consumer" },
      'groupProtocol: \'consumer\'; "classic" with orderingMode "PER_KEY": the broker does not promise to assign a partition and its retries to the same member'
    ],
    [
      "the assignment protocol of another client",
      { partitionAssignmentStrategy: ["eventbus-cooperative-sticky", "range"] },
      'partitionAssignmentStrategy: ["eventbus-cooperative-sticky","range"]; ["eventbus-cooperative-sticky"] with orderingMode "PER_KEY": another protocol does not assign a partition and its retries to the same member'
    ]
  ]
  for (const [title, more, problem] of refusals)
    it(`refuses ${title}, and nothing else beside it`, () => {
      assert.deepStrictEqual(problems(more), [problem])
    })

  it("refuses a handler of batches", () => {
    assert.deepStrictEqual(problemsOf(Binding.makeBatch("orders", { ...base, handleBatch: handler })), [
      'orderingMode: \'PER_KEY\'; "RELAXED_IN_RETRY" or "STRICT" for a handler of batches: records of one call cannot wait for one another'
    ])
  })

  it("refuses a transactional binding", () => {
    assert.deepStrictEqual(problemsOf(Binding.makeTransactional("orders", { ...base, handler })), [
      'orderingMode: \'PER_KEY\'; "RELAXED_IN_RETRY" or "STRICT" for a transactional binding: the place of a failed record in its key cannot be a part of its transaction yet'
    ])
  })

  it("refuses the retry topics of another binding", () => {
    const make = (name: string, groupId: string) => Binding.make(name, { ...base, groupId, handler })
    const paths = Array.from(Binding.problems([make("a", "billing"), make("b", "shipping")]).values())
      .flat()
      .map(({ path, found }) => `${path}: ${found}`)
    assert.include(paths, "naming: 'orders.retry-1'")
  })

  it("tells all refusals at once", () => {
    const retry = RetryPolicy.tiered({ tiers: [{ delay: "1 second", multiplier: 2 }], consumer: "separate" })
    const more = { retry, processingOrder: "unordered", onExhausted: "halt", listenerType: "BATCH" } as const
    const paths = problems(more).map((problem) => problem.slice(0, problem.indexOf(":")))
    for (const path of ["listenerType", "processingOrder", "retry.tiers[0]", "retry.consumer", "onExhausted"])
      assert.include(paths, path)
  })

  it("other modes keep their own refusals", () => {
    const foreign = { orderingMode: "RELAXED_IN_RETRY", partitionAssignmentStrategy: ["range"] } as const
    assert.deepStrictEqual(
      problems(foreign).map((problem) => problem.slice(0, problem.indexOf(":"))),
      ["retry.consumer"]
    )
    assert.deepStrictEqual(problems({ orderingMode: "RELAXED_IN_RETRY", onExhausted: "halt" }), [
      'onExhausted: \'halt\'; "dead-letter", or orderingMode "STRICT" beside "halt"'
    ])
  })
})
