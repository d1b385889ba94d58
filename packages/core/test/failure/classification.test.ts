import { describe, expect, it } from "@effect/vitest"
import { Cause, Data } from "effect"
import * as fc from "fast-check"
import * as BrokerError from "../../src/BrokerError.ts"
import type * as Classifier from "../../src/Classifier.ts"
import { make, type Rules } from "../../src/internal/failure/classification.ts"
import * as ExceptionLists from "../../src/internal/failure/exceptionLists.ts"
import * as Route from "../../src/Route.ts"

type Options = Rules<never>

class GatewayDown extends Data.TaggedError("GatewayDown")<{ readonly status: number }> {}
class CardDeclined extends Data.TaggedError("CardDeclined") {}

const of = (options: Options, error: unknown, tier = 0) => {
  const { inPlace, destination } = make(options)(Cause.fail(error), tier)
  const { _tag, ...details } = destination
  return [
    inPlace ? "in place" : "at once",
    _tag,
    ...Object.values(details).filter((value) => value !== undefined)
  ].join(" ")
}

describe("classification", () => {
  it("CLS-06 by default everything is tried again in place, then in the next tier", () => {
    expect(of({}, new GatewayDown({ status: 503 }))).toBe("in place NextTier")
    expect(make({})(Cause.die("defect"), 0)).toEqual({
      inPlace: true,
      destination: { _tag: "NextTier" },
      permanent: false
    })
  })

  it("SEC-06 an authentication error is permanent by its name or its cause's, unless the binding says otherwise", () => {
    const named = (name: string, cause?: Error) => Object.assign(new Error("refused", { cause }), { name })
    const refused = new BrokerError.AuthenticationFailed({ mechanism: "PLAIN", detail: "refused" })
    const errors = [refused, named("SaslAuthenticationException"), named("KafkaJSSASLAuthenticationError")]
    for (const error of [...errors, named("GatewayError", named("AuthenticationError"))]) {
      expect(of({}, error)).toBe("at once DeadLetter")
      expect(make({})(Cause.die(error), 0).permanent).toBe(true)
      expect(of({ exceptions: { retryableExceptions: ["SomethingElse"] } }, error)).toBe("at once DeadLetter")
      expect(of({ onError: () => Route.retry }, error)).toBe("in place NextTier")
    }
    const retryable = { exceptions: { retryableExceptions: ["SaslAuthenticationException"] } }
    expect(of(retryable, named("SaslAuthenticationException"))).toBe("in place NextTier")
    expect(of({}, named("AuthenticationServerDown"))).toBe("in place NextTier")
  })

  it("CLS-01 CLS-02 routes of rules apply at once, except for a retry", () => {
    const onError = {
      GatewayDown: ({ status }: GatewayDown) => (status === 429 ? Route.after("1 minute") : Route.retry),
      CardDeclined: Route.deadLetter("declined")
    }
    expect(of({ onError }, new GatewayDown({ status: 500 }))).toBe("in place NextTier")
    expect(of({ onError }, new GatewayDown({ status: 429 }))).toBe("at once After 60000")
    expect(of({ onError }, new CardDeclined())).toBe("at once DeadLetter declined")
    expect(of({ onError: () => Route.tier(2) }, new CardDeclined())).toBe("at once Tier 2")
    expect(of({ onError: () => Route.pause }, "text")).toBe("at once Pause")
  })

  it("ruling 29 dead-lettered and skipped records do not count against the dependency", () => {
    const permanent = (route: Route.Route) => make({ onError: () => route })(Cause.fail("x"), 0).permanent
    expect([Route.deadLetter(), Route.skip, Route.pause].map(permanent)).toEqual([true, true, true])
    expect([Route.retry, Route.nextTier, Route.tier(1), Route.after(1)].map(permanent)).not.toContain(true)
  })

  it("CLS-03 CLS-04 CLS-05 lists by class name, by the last part of a qualified name, and by message", () => {
    const exceptions: Classifier.ExceptionLists = {
      nonRetryableExceptions: ["com.enterprise.schema.SchemaValidationException", /card .* declined/],
      skipToTierMapping: { "javax.ws.rs.ServiceUnavailableException": 2, "/quota/i": 3 }
    }
    const named = (name: string, message = "") => Object.assign(new Error(message), { name })
    expect(of({ exceptions }, named("SchemaValidationException"))).toBe("at once DeadLetter")
    expect(of({ exceptions }, named("com.enterprise.schema.SchemaValidationException"))).toBe("at once DeadLetter")
    expect(of({ exceptions }, new Error("card 4711 declined"))).toBe("at once DeadLetter")
    expect(of({ exceptions }, named("ServiceUnavailableException"))).toBe("in place Tier 2")
    expect(of({ exceptions }, new Error("Quota is used up"))).toBe("in place Tier 3")
    expect(of({ exceptions }, named("SocketTimeoutException"))).toBe("in place NextTier")
  })

  it("CLS-07 when only one of pattern and error is qualified, the simple name decides; two qualified names are compared whole", () => {
    const named = (name: string) => Object.assign(new Error(), { name })
    const dead = (pattern: string, name: string) =>
      of({ exceptions: { nonRetryableExceptions: [pattern] } }, named(name))
    expect(dead("Timeout", "java.net.Timeout")).toBe("at once DeadLetter")
    expect(dead("java.net.Timeout", "Timeout")).toBe("at once DeadLetter")
    expect(dead("java.net.Timeout", "org.db.Timeout")).toBe("in place NextTier")
    expect(dead("Timeout", "SocketTimeout")).toBe("in place NextTier")
  })

  it("CLS-12 an expression keeps no state between messages, and matches the beginning of a long one", () => {
    const sticky = /refused/gy
    const classify = make({ exceptions: { nonRetryableExceptions: [/declined/g, "/gone/g", sticky] } })
    const thenOf = (message: string) => classify(Cause.fail(new Error(message)), 0).destination._tag
    for (const message of ["card declined", "gone", "refused"]) {
      expect([thenOf(message), thenOf(message), thenOf(message)]).toEqual(["DeadLetter", "DeadLetter", "DeadLetter"])
    }
    expect(sticky.lastIndex).toBe(0)
    expect(thenOf(`${"x".repeat(1016)}declined`)).toBe("DeadLetter")
    expect(thenOf(`${"x".repeat(1017)}declined`)).toBe("NextTier")
  })

  it("CLS-11 a defect has no typed route, but classifier and lists apply to it", () => {
    const defect = Cause.die(new CardDeclined())
    expect(make({ onError: () => Route.skip })(defect, 0).destination._tag).toBe("NextTier")
    expect(make({ onError: () => Route.skip, classifier: () => Route.deadLetter() })(defect, 0).destination._tag).toBe(
      "DeadLetter"
    )
    expect(make({ exceptions: { skipToTierMapping: { CardDeclined: 2 } } })(defect, 0).destination).toEqual({
      _tag: "Tier",
      tier: 2
    })
  })

  it("lists match the chain of causes, also a cyclic one", () => {
    const root = Object.assign(new Error("refused"), { name: "ServiceUnavailableException" })
    const exceptions = { skipToTierMapping: { ServiceUnavailableException: 1 } }
    expect(of({ exceptions }, new Error("outer", { cause: new Error("middle", { cause: root }) }))).toBe(
      "in place Tier 1"
    )
    const cyclic: Error = new Error("round")
    cyclic.cause = cyclic
    expect(of({ exceptions }, cyclic)).toBe("in place NextTier")
  })

  it("CLS-07 ruling 58 precedence: rule, classifier, non-retryable, skip, retryable; an error outside a non-empty retryable list goes to the next tier at once", () => {
    const exceptions = {
      nonRetryableExceptions: ["A"],
      skipToTierMapping: { A: 1, B: 2 },
      retryableExceptions: ["B", "C"]
    }
    const error = (name: string) => Object.assign(new Error(), { name })
    expect(["A", "B", "C", "D"].map((name) => of({ exceptions }, error(name)))).toEqual([
      "at once DeadLetter",
      "in place Tier 2",
      "in place NextTier",
      "at once NextTier"
    ])
    const classifier: Classifier.ExceptionClassifier = ({ className }, tier) =>
      className === "A" ? Route.retryThenTier(tier + 1) : undefined
    expect(of({ exceptions, classifier }, error("A"), 1)).toBe("in place Tier 2")
    expect(of({ exceptions, classifier }, error("D"))).toBe("at once NextTier")
    expect(of({ exceptions, classifier, onError: { A: Route.skip } }, { _tag: "A" })).toBe("at once Skip")
  })

  it("CLS-02 a classifier returns any route, or the equivalent decision of connector seed §5", () => {
    const answers = (answer: Route.Route | Classifier.ExceptionRoutingDecision) => of({ classifier: () => answer }, "x")
    const seed = (routing: Classifier.ExceptionRouting, targetTier = -1) => answers({ routing, targetTier })
    expect([answers(Route.retry), seed("NEXT_TIER")]).toEqual(["in place NextTier", "in place NextTier"])
    expect([answers(Route.retryThenTier(2)), seed("SKIP_TO_TIER", 2)]).toEqual(["in place Tier 2", "in place Tier 2"])
    expect([answers(Route.deadLetter()), seed("DEAD_LETTER")]).toEqual(["at once DeadLetter", "at once DeadLetter"])
    expect([answers(Route.pause), seed("PAUSE_CONTAINER")]).toEqual(["at once Pause", "at once Pause"])
    expect(answers(Route.nextTier)).toBe("at once NextTier")
    expect(answers(Route.tier(3))).toBe("at once Tier 3")
    expect(answers(Route.after("1 minute"))).toBe("at once After 60000")
    expect(answers(Route.deadLetter("gone"))).toBe("at once DeadLetter gone")
    expect(answers(Route.skip)).toBe("at once Skip")
  })

  it("CLS-10 classification never throws: there is a decision, whatever is thrown and whatever rules and classifiers do", () => {
    const hostile: ReadonlyArray<unknown> = [
      undefined,
      null,
      Symbol("x"),
      Object.create(null),
      Proxy.revocable({}, {}).proxy,
      new Proxy(
        {},
        {
          get: () => {
            throw new Error("getter")
          },
          has: () => {
            throw new Error("has")
          }
        }
      )
    ]
    const options: Options = {
      onError: () => {
        throw new Error("rule")
      },
      classifier: () => {
        throw new Error("classifier")
      },
      exceptions: { retryableExceptions: ["A"], nonRetryableExceptions: [/(a+)+$/], skipToTierMapping: { B: 1 } }
    }
    const decides = (error: unknown) => {
      expect(make(options)(Cause.fail(error), 0)).toEqual(make(options)(Cause.fail(error), 0))
      make(options)(Cause.die(error), 1)
      make({ onError: {} })(Cause.fail(error), 0)
    }
    for (const error of hostile) decides(error)
    fc.assert(fc.property(fc.anything(), decides))
    const nonsense = [undefined, null, "DeadLetter", { _tag: "Elsewhere" }, 7, { routing: "AWAY" }]
    for (const answer of nonsense) {
      expect(of({ onError: () => answer as never, classifier: () => answer as never }, "x")).toBe("in place NextTier")
    }
  })

  it("CLS-10 names such as constructor are ordinary names", () => {
    const exceptions = { skipToTierMapping: { constructor: 1, toString: 2 } }
    expect(of({ exceptions }, { _tag: "constructor" })).toBe("in place Tier 1")
    expect(of({ exceptions: { skipToTierMapping: {} } }, { _tag: "constructor" })).toBe("in place NextTier")
    expect(of({ onError: {} }, { _tag: "__proto__" })).toBe("in place NextTier")
  })

  it("CLS-09 CFG every mistake in the lists is named at once", () => {
    const lists = {
      retryableExceptions: ["x.A", "/(/"],
      nonRetryableExceptions: ["A", " "],
      skipToTierMapping: new Map([
        ["B", 4],
        ["C", 1.5]
      ])
    }
    expect(ExceptionLists.problems(lists, 3).map(({ path }) => path)).toEqual([
      "retryableExceptions[1]",
      "nonRetryableExceptions[1]",
      "retryableExceptions[0]",
      "skipToTierMapping.B",
      "skipToTierMapping.C"
    ])
    expect(ExceptionLists.problems({ skipToTierMapping: { B: 1 } }, 0)[0]?.allowed).toContain("no retry tiers")
    expect(ExceptionLists.problems({ retryableExceptions: ["A", /b/], skipToTierMapping: { B: 2 } }, 3)).toEqual([])
    expect(of({ exceptions: { retryableExceptions: ["/(/"] } }, "x")).toBe("at once NextTier")
  })
})
