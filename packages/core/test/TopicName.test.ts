import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import * as Binding from "../src/Binding.ts"
import * as DeadLetter from "../src/DeadLetter.ts"
import * as DerivedNames from "../src/internal/base/derivedNames.ts"
import * as RetryPolicy from "../src/RetryPolicy.ts"
import * as Serde from "../src/Serde.ts"
import * as TopicName from "../src/TopicName.ts"

const source: TopicName.Source = { topic: "orders.events", groupId: "billing" }
const tiers = (count: number): ReadonlyArray<undefined> => Array.from({ length: count }, () => undefined)

interface Derived {
  readonly retry: ReadonlyArray<string>
  readonly deadLetter: string
}

/** The topics of a binding whose tiers have these suffixes; undefined leaves the name to the strategy. */
const topicsOf = (
  { topic, groupId }: TopicName.Source,
  tierSuffixes: ReadonlyArray<string | undefined>,
  naming?: TopicName.NamingStrategy,
  deadLetterSuffix?: string
): Derived => {
  const { definition } = Binding.make("orders", {
    ...{ topic, groupId, value: Serde.bytes, handler: () => Effect.void },
    ...(naming && { naming }),
    retry: RetryPolicy.tiered({
      tiers: tierSuffixes.map((topicSuffix, index) => ({ delay: index + 1, ...(topicSuffix && { topicSuffix }) }))
    }),
    deadLetter: DeadLetter.withSettings(DeadLetter.storeOnly, { topicSuffix: deadLetterSuffix })
  })
  return { retry: definition.tiers.topics.map((tier) => tier.topic), deadLetter: definition.deadLetterTopic }
}

const derive = (strategy: TopicName.NamingStrategy, count: number) => topicsOf(source, tiers(count), strategy)
const reasons = (derived: Derived, sources: ReadonlyArray<string> = ["orders.events"]) =>
  DerivedNames.problems(derived, sources).map(({ name, reason }) => `${name}: ${reason}`)

describe("TopicName", () => {
  it("NAM-01 NAM-03 default names", () => {
    expect(topicsOf(source, tiers(3))).toEqual({
      retry: ["orders.events.retry-1", "orders.events.retry-2", "orders.events.retry-3"],
      deadLetter: "orders.events.DLT"
    })
  })

  it("NAM-04 built-in strategies, and a user's function", () => {
    expect(derive(TopicName.dotted, 2)).toEqual({
      retry: ["orders.events.retry.1", "orders.events.retry.2"],
      deadLetter: "orders.events.error"
    })
    expect(derive(TopicName.dashed, 1)).toEqual({ retry: ["orders.events-retry"], deadLetter: "orders.events-dlq" })
    expect(derive(TopicName.perGroup, 1)).toEqual({
      retry: ["orders.events.billing.retry-1"],
      deadLetter: "orders.events.billing.DLT"
    })
    const own = { name: "own", retry: (_: TopicName.Source, n: number) => `r${n}`, deadLetter: () => "dead" }
    expect(derive(own, 2)).toEqual({ retry: ["r1", "r2"], deadLetter: "dead" })
  })

  it("NAM-02 NAM-03 an explicit suffix replaces what comes after the topic, for its tier only", () => {
    expect(topicsOf(source, [undefined, "slow"], TopicName.dotted, "dead")).toEqual({
      retry: ["orders.events.retry.1", "orders.events.slow"],
      deadLetter: "orders.events.dead"
    })
  })

  it("NAM-08 legal names are exactly Kafka's", () => {
    for (const name of ["a", "A.b_c-9", "x".repeat(249), "...", "__consumer_offsets", "constructor", "__proto__"]) {
      expect(TopicName.illegal(name)).toBeUndefined()
    }
    expect(TopicName.illegal("")).toBe("it is empty")
    expect(TopicName.illegal("..")).toBe("it is '.' or '..'")
    expect(TopicName.illegal("x".repeat(250))).toBe("it has 250 characters; at most 249 are allowed")
    expect(TopicName.illegal("a/b")).toBe('it contains "/"; allowed are a-z A-Z 0-9 . _ -')
    expect(TopicName.illegal("caf\u00e9")).toContain("\u00e9")
    expect(TopicName.illegal("line\n")).toContain("\\n")
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300, size: "max" }), (name) => {
        const legal = /^[a-zA-Z0-9._-]{1,249}$/.test(name) && !name.endsWith("\n") && name !== "." && name !== ".."
        expect(TopicName.illegal(name) === undefined).toBe(legal)
      })
    )
  })

  it("NAM-08 '.' and '_' collide wherever they stand, in both directions, and a name never collides with itself", () => {
    expect(DerivedNames.collide("a.b", "a_b")).toBe(true)
    expect(DerivedNames.collide("a.b", "a-b")).toBe(false)
    const name = fc.string({ unit: fc.constantFrom("a", ".", "_"), minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(name, name, (a, b) => {
        const same = a.length === b.length && [...a].every((c, i) => (c === "a") === (b[i] === "a"))
        expect(DerivedNames.collide(a, b)).toBe(same && a !== b)
        expect(DerivedNames.collide(b, a)).toBe(DerivedNames.collide(a, b))
      })
    )
  })

  it("NAM-08 good names have no problem; all problems of bad ones are reported together", () => {
    for (const strategy of [TopicName.standard, TopicName.dotted, TopicName.perGroup]) {
      expect(reasons(derive(strategy, 5))).toEqual([])
    }
    expect(reasons(derive(TopicName.dashed, 1))).toEqual([])
    expect(reasons(derive(TopicName.dashed, 2))).toEqual([
      "orders.events-retry: it occurs twice: each tier and the dead letter topic needs a name of its own"
    ])
    expect(reasons({ retry: ["orders.events", "a b", "orders_events.DLT"], deadLetter: "orders.events.DLT" })).toEqual([
      "orders.events: it is the name of a source topic",
      'a b: it contains " "; allowed are a-z A-Z 0-9 . _ -',
      "orders.events.DLT: it collides with 'orders_events.DLT': Kafka does not tell '.' and '_' apart"
    ])
    expect(reasons({ retry: [], deadLetter: "other.source" }, ["orders", "other_source"])).toEqual([
      "other.source: it collides with 'other_source': Kafka does not tell '.' and '_' apart"
    ])
    const long = topicsOf({ topic: "x".repeat(246), groupId: "g" }, [undefined])
    expect(DerivedNames.problems(long, []).map(({ name }) => name)).toEqual([long.retry[0], long.deadLetter])
  })

  it("NAM-10 names that objects inherit are ordinary names", () => {
    for (const topic of ["constructor", "__proto__", "toString", "hasOwnProperty"]) {
      const derived = topicsOf({ topic, groupId: topic }, [undefined])
      expect(reasons(derived, [topic])).toEqual([])
      expect(reasons({ retry: [topic], deadLetter: "dead" }, [])).toEqual([])
    }
  })

  it("NAM-05 NAM-06 NAM-07 containers, group members and groups", () => {
    expect([DerivedNames.container("orders"), DerivedNames.container("orders", 2)]).toEqual([
      "eventbus-orders",
      "eventbus-orders-retry-2"
    ])
    expect(DerivedNames.groupInstanceId("orders", "host-1", 0)).toBe("orders__host-1__0")
    expect(DerivedNames.transactionalId("billing", "orders", 3)).toBe("billing/orders/3")
    expect(DerivedNames.replayTransactionalId("billing", "orders.DLT")).toBe("billing/orders.DLT/replay")
    expect(TopicName.deadLetterGroup("billing")).toBe("billing.dlt")
    expect(TopicName.retryGroup("billing")).toBe("billing.retry")
  })
})
