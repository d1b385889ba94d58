/** Lists of topics that no binding may have, and the plan of one that it may have. */
import { assert, describe, it } from "@effect/vitest"
import { Binding, DeadLetter, Plan, RetryPolicy, TopicName } from "@eventbus/core"
import { Effect } from "effect"

const binding = (topic: unknown, more: object = {}) =>
  Binding.make("billing", { topic: topic as string, groupId: "billing", handler: () => Effect.void, ...more })

const problemsOf = (...bindings: ReadonlyArray<Binding.Binding<never>>) =>
  Array.from(Binding.problems(bindings).values())
    .flat()
    .map(({ path, found, allowed }) => `${path}: ${found}, allowed ${allowed}`)

const aList = "a topic name, or a list of one or more topic names"
const apart = (strategy: string) => `would share this one (naming strategy ${strategy})`

describe("RCH-11 a list of topics", () => {
  it("RCH-11 takes one topic or several, in one binding or beside others of the group", () => {
    for (const topic of ["orders", ["orders"], ["orders", "payments", "refunds"]])
      assert.deepStrictEqual(problemsOf(binding(topic)), [])
  })

  const cases: ReadonlyArray<readonly [title: string, topic: unknown, more: object, problems: ReadonlyArray<string>]> =
    [
      ["is empty", [], {}, [`topic: an empty list, allowed ${aList}`]],
      ["has no names in it", ["orders", 7], {}, ["topic[1]: 7, allowed a text"]],
      ["is no list", 7, {}, [`topic: 7, allowed ${aList}`]],
      [
        "has a topic twice",
        ["orders", "payments", "orders"],
        {},
        ["topic[2]: 'orders', allowed each topic once: topic[0] is the same"]
      ],
      [
        "has an illegal name",
        ["orders", "pay ments"],
        {},
        [
          "topic[1]: 'pay ments', allowed a legal topic name: it contains \" \"; allowed are a-z A-Z 0-9 . _ -",
          "deadLetterTopic: 'pay ments.DLT', allowed a legal topic name: it contains \" \"; allowed are a-z A-Z 0-9 . _ -"
        ]
      ],
      [
        "has names that Kafka does not tell apart",
        ["a.b", "a_b"],
        {},
        ["topic[1]: 'a_b', allowed a name that Kafka can tell apart from topic[0], 'a.b'"]
      ],
      [
        "has a dead letter topic of its own",
        ["orders", "orders.DLT"],
        {},
        ["topic[1]: 'orders.DLT', allowed a topic of records: topic 'orders' of the list derives 'orders.DLT'"]
      ],
      [
        "has a retry topic of its own, in whatever order",
        ["orders.retry-2", "orders"],
        {},
        ["topic[0]: 'orders.retry-2', allowed a topic of records: topic 'orders' of the list derives 'orders.retry-2'"]
      ],
      [
        "has a dead letter topic for all topics together",
        ["orders", "payments"],
        { naming: { ...TopicName.standard, name: "one", deadLetter: () => "billing.DLT" } },
        [
          `deadLetterTopic: 'billing.DLT', allowed names that differ from topic to topic: 'orders' and 'payments' ${apart("one")}`
        ]
      ],
      [
        "has a retry topic for all topics together",
        ["orders", "payments"],
        {
          naming: { ...TopicName.standard, name: "one", retry: (_: unknown, tier: number) => `billing.retry-${tier}` }
        },
        [
          `retry.tiers: 'billing.retry-1', allowed names that differ from topic to topic: 'orders' and 'payments' ${apart("one")}`
        ]
      ]
    ]
  for (const [title, topic, more, problems] of cases)
    it(`RCH-11 is refused when it ${title}`, () => assert.deepStrictEqual(problemsOf(binding(topic, more)), problems))

  it("RCH-11 a suffix gives each topic a dead letter topic of its own", () =>
    assert.deepStrictEqual(
      problemsOf(
        binding(["orders", "payments"], {
          deadLetter: DeadLetter.withSettings(DeadLetter.storeOnly, { topicSuffix: "dead" })
        })
      ),
      []
    ))

  const other = (topic: unknown, groupId: string) =>
    Binding.make("other", { topic: topic as string, groupId, handler: () => Effect.void })

  it("RCH-11 shares no topic with another binding of the group, whichever of the list it is", () =>
    assert.deepStrictEqual(problemsOf(binding(["orders", "payments"]), other(["refunds", "payments"], "billing")), [
      "groupId: 'billing', allowed another group: binding 'billing' reads 'payments' in this one, so each record would reach only one of the two bindings"
    ]))

  it("RCH-11 shares no derived topic with a binding of another group", () => {
    const [first = ""] = problemsOf(binding(["orders", "payments"]), other("payments", "shipping"))
    assert.match(first, /^naming: 'payments\.retry-1', allowed another name: binding 'billing' uses this topic too/)
  })

  it("RCH-11 has no topic that another binding dead-letters to, whichever of the list it is", () => {
    const found = problemsOf(binding("payments"), other(["orders", "payments.DLT"], "shipping"))
    assert.include(
      found,
      "topic[1]: 'payments.DLT', allowed a topic other than 'payments.DLT', which binding 'billing' publishes its failed records to"
    )
  })
})

it("RCH-11 a plan names the derived topics of every topic, each with its source", () => {
  const plan = Plan.make(binding(["orders", "payments"], { retry: RetryPolicy.tiered({ tiers: ["1 second"] }) }))
  assert.deepStrictEqual(
    plan.topics.map(({ role, topic, source }) => [role, topic, source]),
    [
      ["source", "orders", "orders"],
      ["retry", "orders.retry-1", "orders"],
      ["dead-letter", "orders.DLT", "orders"],
      ["source", "payments", "payments"],
      ["retry", "payments.retry-1", "payments"],
      ["dead-letter", "payments.DLT", "payments"]
    ]
  )
  assert.deepStrictEqual(plan.consumers, [
    { groupId: "billing", topics: ["orders", "payments", "orders.retry-1", "payments.retry-1"], members: 1 }
  ])
})
