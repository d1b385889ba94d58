/** The ACLs that a binding requires, compared with those that the cluster reports. */
import { assert, describe, it } from "@effect/vitest"
import { Binding, type Broker, DeadLetter, Plan, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Data, Effect } from "effect"
import * as Acls from "../../src/internal/checks/acls.ts"

class Down extends Data.TaggedError("Down") {}

const definitionOf = (options: {
  readonly deadLetter?: DeadLetter.DeadLetter<never>
  readonly consumer?: "shared" | "separate"
  readonly missingTopics?: "create" | "wait"
}) =>
  Binding.make("orders", {
    topic: "orders",
    groupId: "billing",
    value: Serde.string,
    handler: () => Effect.fail(new Down()),
    onError: { Down: Route.retry },
    retry: RetryPolicy.tiered({ tiers: ["1 second"], consumer: options.consumer ?? "shared" }),
    ...(options.deadLetter !== undefined && { deadLetter: options.deadLetter }),
    ...(options.missingTopics !== undefined && { missingTopics: options.missingTopics })
  }).definition

type Grants = Readonly<Record<string, ReadonlyArray<Broker.AclOperation>>>

const sets = (grants: Grants) =>
  new Map(Object.entries(grants).map(([name, operations]) => [name, new Set(operations)] as const))

const missing = (
  options: Parameters<typeof definitionOf>[0],
  topics: Grants,
  groups: Grants,
  cluster?: ReadonlyArray<Broker.AclOperation>
) => {
  const definition = definitionOf(options)
  const told = {
    topics: sets(topics),
    groups: sets(groups),
    cluster: cluster === undefined ? undefined : new Set(cluster)
  }
  return Acls.missing(Acls.topicsOf(definition), Acls.groupsOf(definition), told).map(Acls.describe)
}

const all: Grants = { orders: ["Read"], "orders.retry-1": ["Read", "Write"], "orders.DLT": ["Write"] }

const strategies = {
  "store only": DeadLetter.storeOnly,
  alert: DeadLetter.alertAndStore(() => Effect.void),
  "scheduled replay": DeadLetter.scheduledReplay(),
  custom: DeadLetter.custom(() => Effect.void)
} as const

describe("ACLs", () => {
  for (const [name, deadLetter] of Object.entries(strategies)) {
    for (const consumer of ["shared", "separate"] as const) {
      it(`${name}, ${consumer} retries: the plan requires what the start checks, on topics and groups`, () => {
        const definition = definitionOf({ deadLetter, consumer })
        const plan = Plan.make({ name: "orders", definition })
        assert.deepStrictEqual(
          plan.topics.map(({ topic, operations, createIfMissing }) => ({ topic, operations, createIfMissing })),
          Acls.topicsOf(definition)
        )
        assert.deepStrictEqual(plan.groups, Acls.groupsOf(definition))
        const reads = name === "scheduled replay" || name === "custom"
        assert.deepStrictEqual(
          plan.topics.map(({ topic, operations }) => `${operations.join(" and ")} on ${topic}`),
          [
            ...["Read on orders", "Read and Write on orders.retry-1"],
            ...(reads
              ? ["Read and Write on orders.DLT", "Read and Write on orders.DLT.replays"]
              : ["Write on orders.DLT"])
          ]
        )
        assert.strictEqual(plan.groups.includes("billing.dlt"), reads)
      })
    }
  }

  it("no ACL is missing when the binding may read and write its topics", () => {
    assert.deepStrictEqual(missing({}, all, { billing: ["Read"] }), [])
  })

  it("each missing ACL names its topic or group", () => {
    const denied = { orders: ["Describe"], "orders.retry-1": ["Read"], "orders.DLT": [] } as const
    assert.deepStrictEqual(missing({}, denied, { billing: ["Describe"] }), [
      "Read on topic 'orders'",
      "Write on topic 'orders.retry-1'",
      "Write on topic 'orders.DLT'",
      "Read on group 'billing'"
    ])
  })

  it("a topic to be made needs Create when the cluster denies making topics", () => {
    const { "orders.DLT": _, ...some } = all
    const create = ["Create on topic 'orders.DLT' (unless it is granted for this name)"]
    assert.deepStrictEqual(missing({}, some, {}, ["Describe"]), create)
    assert.deepStrictEqual(missing({}, some, {}, ["Create"]), [])
    assert.deepStrictEqual(missing({}, some, {}), [])
    assert.deepStrictEqual(missing({ missingTopics: "wait" }, some, {}, ["Describe"]), [])
  })

  it("a strategy that consumes the dead letter topic needs Read on it and on its own group", () => {
    const deadLetter = DeadLetter.scheduledReplay({})
    assert.deepStrictEqual(missing({ deadLetter }, all, { billing: ["Read"], "billing.dlt": [] }, ["Create"]), [
      "Read on topic 'orders.DLT'",
      "Read on group 'billing.dlt'"
    ])
  })

  it("tiers with a separate consumer need Read on their group", () => {
    const groups: Grants = { billing: ["Read"], "billing.retry": [] }
    assert.deepStrictEqual(missing({ consumer: "separate" }, all, groups), ["Read on group 'billing.retry'"])
  })

  it("an ACL that the cluster does not report is not listed as missing", () => {
    assert.deepStrictEqual(missing({}, {}, {}), [])
  })
})
