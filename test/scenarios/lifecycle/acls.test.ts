/** The connector reports missing ACLs when a binding starts, before a record needs them. */
import { assert } from "@effect/vitest"
import { Binding, Broker, Plan, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect, Logger } from "effect"
import * as Bus from "../bus.ts"

class Down extends Data.TaggedError("Down") {}

const orders = Binding.make("orders", {
  ...Bus.orders,
  retry: RetryPolicy.tiered({ tiers: ["1 second"] }),
  handler: () => Effect.fail(new Down()),
  onError: { Down: Route.retry }
})

/** The cluster, which says `denied` of what this user may do. */
const withDenied = <A, E, R>(denied: Partial<Broker.AuthorizedOperations>, use: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const { broker } = yield* MemoryBroker.MemoryBroker
    const admin = Effect.map(broker.admin, (one) => ({
      ...one,
      authorizedOperations: (topics: ReadonlyArray<string>, groups: ReadonlyArray<string>) =>
        Effect.map(one.authorizedOperations!(topics, groups), (told) => ({
          ...told,
          topics: new Map([...told.topics, ...(denied.topics ?? [])]),
          groups: new Map([...told.groups, ...(denied.groups ?? [])])
        }))
    }))
    return yield* Effect.provideService(use, Broker.Broker, { ...broker, admin })
  })

const denied = { topics: new Map([["orders.DLT", new Set(["Describe"] as const)]]), groups: new Map() }

Bus.scenario("a missing ACL is an event and one log line, also when the session starts again", () =>
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    yield* memory.createTopic("orders", { partitions: 1 })
    const lines: Array<string> = []
    const capture = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
    const app = yield* withDenied(denied, Bus.start(orders)).pipe(Effect.provide(capture))
    yield* Bus.until(() => app.of("AclsMissing").length === 1)
    const acl = { resource: "topic", name: "orders.DLT", operation: "Write" } as const
    assert.deepStrictEqual(app.of("AclsMissing")[0]?.acls, [acl])
    yield* app.connector.stop("orders")
    yield* app.connector.start("orders")
    yield* Bus.until(() => app.of("AclsMissing").length === 2, "1 second")
    assert.deepStrictEqual(
      lines.filter((line) => line.includes("ACLs")),
      ["ACLs are missing: Write on topic 'orders.DLT'. Requests that need them fail until they are granted"]
    )
  })
)

Bus.scenario("a plan lists missing ACLs", () =>
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    for (const topic of ["orders", "orders.retry-1", "orders.DLT"]) yield* memory.createTopic(topic, { partitions: 1 })
    const plan = Plan.make(orders)
    const message = "An ACL is missing: Write on topic 'orders.DLT'."
    const finding = { severity: "error", code: "acl-missing", subject: "orders.DLT", message }
    const findings = Effect.map(Plan.check(plan), (all) => all.filter(({ code }) => code === "acl-missing"))
    assert.deepStrictEqual(yield* withDenied(denied, findings), [finding])
    assert.deepStrictEqual(yield* findings, [])
  })
)
