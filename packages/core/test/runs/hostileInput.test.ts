import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Result } from "effect"
import { append, bytes, inTime, scenario, text } from "../../../../test/scenarios/bus.ts"
import { type LetterTransform, Skip } from "../../src/LetterTransform.ts"
import * as Serde from "../../src/Serde.ts"
import { atOnce, runsOf } from "./runProcesses.ts"

const throwing = (): never => {
  throw new Error("trap")
}

const hostile: ReadonlyArray<ProxyHandler<object>> = [
  { getPrototypeOf: throwing },
  { get: throwing, ownKeys: throwing, getOwnPropertyDescriptor: throwing, has: throwing, getPrototypeOf: throwing }
]

const skipWith = (descriptor: PropertyDescriptor) =>
  Effect.suspend(() => Effect.fail(Object.defineProperty(new Skip({ reason: "x" }), "reason", descriptor)))

const succeeding: LetterTransform<unknown, unknown> = () => Effect.succeed({ value: "x" })

const serde = (part: object): Serde.Any => ({ ...Serde.string, ...part }) as never

interface Case {
  readonly transform?: LetterTransform<unknown, unknown>
  readonly value?: Serde.Any
  readonly key?: Serde.Any
}

const cases: ReadonlyArray<readonly [what: string, case_: Case]> = [
  ...[[null], [{}], [{ key: "a", value: "text" }], [new Proxy({}, hostile[1]!)]].map(
    (headers) => ["headers that are none", { value: serde({ headers: () => headers }) }] as const
  ),
  ["headers whose length throws", { value: serde({ headers: () => new Proxy([], { get: throwing }) }) }],
  ...["text", undefined, 7, new Proxy(new Uint8Array(1), {})].map(
    (bytes) => [`bytes that are ${typeof bytes}`, { value: serde({ encode: () => Result.succeed(bytes) }) }] as const
  ),
  ["a failure without an error", { value: serde({ encode: () => Result.fail(undefined) }) }],
  [
    "a key that is undefined",
    { transform: () => Effect.succeed({ value: "x", key: undefined }), key: Serde.bytes as Serde.Any }
  ],
  ...hostile.map(
    (handler) => ["an error that is a Proxy", { transform: () => Effect.fail(new Proxy({}, handler) as Skip) }] as const
  ),
  ["an answer that is a Proxy", { transform: () => Effect.succeed(new Proxy({}, hostile[1]!) as never) }],
  ["a reason that throws", { transform: () => skipWith({ get: throwing }) }],
  ["a reason that is a symbol", { transform: () => skipWith({ value: Symbol("x") }) }]
]

describe("values of users that runs are given", () => {
  for (const [index, [what, { transform = succeeding, value = Serde.string, key = Serde.string }]] of cases.entries()) {
    scenario(`OPS-06 ruling 86 ${what} (${index}): the run goes on, and counts the letter with a reason`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* memory.createTopic("orders.DLT")
        yield* append("orders.DLT", 0, [..."abc"])
        const runs = yield* runsOf("host-a", { transforms: new Map([["repair", transform]]), serdes: { key, value } })
        const plan = yield* inTime(runs.plan({ ...atOnce, transform: "repair" }))
        const receipt = yield* inTime(runs.apply(plan.id), "1 second")
        assert.deepInclude(receipt, { state: "done", dealtWith: 0, refused: 3, closed: true })
        assert.match([...receipt.refusals.keys()][0] ?? "", /^Transform 'repair' (made|failed|answered)/)
        assert.lengthOf(yield* memory.log("orders", 0), 0)
      })
    )
  }

  scenario("OPS-07 ruling 86 a plan request that throws when it is read is refused by path", () =>
    Effect.gen(function* () {
      const runs = yield* runsOf("host-a")
      const refused = (request: unknown) => inTime(Effect.flip(runs.plan(request as never)))
      const proxy = new Proxy({}, hostile[1]!)
      const getter = Object.defineProperty({ ...atOnce }, "reason", { get: throwing, enumerable: true })
      for (const [request, argument] of [
        [proxy, "action"],
        [getter, "reason"],
        [{ ...atOnce, select: proxy }, "selection"],
        [{ ...atOnce, select: { records: [proxy] } }, "selection"],
        [{ ...atOnce, canaryWait: proxy }, "canaryWait"]
      ] as const)
        assert.deepInclude(yield* refused(request), { _tag: "InvalidArgument", command: "plan", argument })
    })
  )

  scenario("OPS-07 a reason or a name that is too long for the journal is refused as what it is", () =>
    Effect.gen(function* () {
      const runs = yield* runsOf("host-a")
      for (const argument of ["reason", "by"]) {
        const request = { ...atOnce, [argument]: "x".repeat(1_200_000) }
        const refused = yield* inTime(Effect.flip(runs.plan(request)))
        assert.deepInclude(refused, { _tag: "InvalidArgument", argument, given: "1200000 characters" })
      }
    })
  )

  scenario("OPS-04 a letter with texts of any length is given up, and its entry in the journal is small", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic("orders.DLT")
      const long = new Uint8Array(200_000).fill(1)
      const names = ["x-eventbus-last-exception-message", "x-eventbus-last-exception-class"]
      yield* memory.append("orders.DLT", 0, [
        { key: bytes("k"), value: bytes("a"), headers: names.map((key) => ({ key, value: long })) },
        { key: bytes("k"), value: bytes("b"), headers: [] }
      ])
      const runs = yield* runsOf("host-a")
      const plan = yield* inTime(runs.plan({ action: "discard", select: { all: true }, reason: "junk" }))
      assert.deepInclude(yield* inTime(runs.apply(plan.id), "1 second"), { state: "done", dealtWith: 2, closed: true })
      const entries = (yield* memory.log("orders.DLT.replays", 0)).filter(({ key }) =>
        text(key)?.startsWith("discarded/")
      )
      assert.lengthOf(entries, 2)
      for (const { value } of entries) assert.isBelow(value?.length ?? 0, 10_000)
    })
  )
})
