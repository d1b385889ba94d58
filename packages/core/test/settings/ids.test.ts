/** Kafka's protocol has 16 bits for the length of a text: ids that do not fit are refused before anything starts. */
import { assert, describe, it } from "@effect/vitest"
import { Adapter, Binding, Hostname, Serde } from "@eventbus/core"
import { Effect } from "effect"
import { scenario, start } from "../../../../test/scenarios/bus.ts"
import * as DerivedNames from "../../src/internal/base/derivedNames.ts"

const most = 32_500
const most16 = 32_767
const bytesOf = (text: string) => new TextEncoder().encode(text).length

const binding = (groupId: string, adopts: ReadonlyArray<string> = []) =>
  Binding.make("orders", { topic: "orders", groupId, adopts, value: Serde.string, handler: () => Effect.void })
const problemsOf = (...given: Parameters<typeof binding>) => Binding.problems([binding(...given)]).get(0) ?? []

describe("ids that are too long", () => {
  it("CFG-21 a group, and a former one, is refused with path, length and bound, in bytes of UTF-8", () => {
    assert.deepStrictEqual(problemsOf("g".repeat(most), ["f".repeat(most)]), [])
    for (const [name, bytes] of [
      ["g".repeat(most + 1), most + 1],
      ["é".repeat(20_000), 40_000],
      ["%".repeat(11_000), 33_000]
    ] as const) {
      assert.deepInclude(problemsOf(name)[0], { path: "groupId", found: `a text of ${bytes} bytes` })
      assert.match(problemsOf(name)[0]!.allowed, /^at most 32500 bytes of UTF-8/)
      assert.deepStrictEqual(
        problemsOf("billing", ["old", name]).map(({ path, found }) => [path, found]),
        [["adopts[1]", `a text of ${bytes} bytes`]]
      )
    }
  })

  it("the longest group leaves room for every id that is made of it", () => {
    const topic = "t".repeat(249)
    for (const groupId of ["g".repeat(most), "/".repeat(Math.floor(most / 3))]) {
      for (const id of [
        DerivedNames.transactionalId(groupId, topic, 2 ** 31 - 1),
        DerivedNames.formerTransactionalId(groupId, topic, 2 ** 31 - 1),
        DerivedNames.replayTransactionalId(groupId, topic),
        DerivedNames.formerReplayTransactionalId(groupId, topic),
        DerivedNames.runsTransactionalId(groupId, topic)
      ])
        assert.isAtMost(bytesOf(id), most16)
    }
  })

  it.effect("the port refuses what the protocol cannot carry, and a member that the broker refuses", () =>
    Effect.gen(function* () {
      const long = "x".repeat(most16 + 1)
      const detailOf = (operation: Parameters<typeof Adapter.checkOptions>[0], options: object) =>
        Effect.map(Effect.flip(Adapter.checkOptions(operation, options)), ({ detail }) => detail)
      const consumer = { groupId: "billing", topics: ["orders"] }
      const bound = "found a text of 32768 bytes, allowed is at most 32767 bytes of UTF-8"
      assert.include(yield* detailOf("consumer", { ...consumer, groupId: long }), `groupId: ${bound}`)
      assert.include(
        yield* detailOf("consumer", { ...consumer, replacesGroupInstanceIds: [long] }),
        `replacesGroupInstanceIds[0]: ${bound}`
      )
      assert.include(
        yield* detailOf("consumer", { ...consumer, groupInstanceId: "m".repeat(250) }),
        "a legal group.instance.id: it has 250 characters; at most 249 are allowed"
      )
      assert.include(
        yield* detailOf("consumer", { ...consumer, groupInstanceId: "a/b" }),
        "groupInstanceId: found 'a/b', allowed is a legal group.instance.id"
      )
      assert.include(yield* detailOf("transactionalProducer", { transactionalId: long }), `transactionalId: ${bound}`)
      assert.include(
        yield* detailOf("transactionalProducer", { transactionalId: "t", fences: ["a", long] }),
        `fences[1]: ${bound}`
      )
      yield* Adapter.checkOptions("consumer", { ...consumer, groupInstanceId: "m".repeat(249) })
      yield* Adapter.checkOptions("transactionalProducer", { transactionalId: "x".repeat(most16), fences: [] })
    })
  )
})

describe("static members", () => {
  scenario("ruling 81 a host whose name leaves no room for the binding's is refused with the bound", () =>
    Effect.gen(function* () {
      const member = (hostname: string) =>
        start(
          Binding.make("orders", {
            ...{ topic: "orders", groupId: "billing", staticMembership: true, value: Serde.string },
            handler: () => Effect.void
          })
        ).pipe(Effect.provideService(Hostname.Hostname, hostname))
      const refused = yield* Effect.flip(member("h".repeat(240)))
      assert.strictEqual(refused._tag, "ConfigurationValidation")
      assert.include(refused.message, "staticMembership")
      assert.include(refused.message, "at most 249 characters")
      assert.strictEqual((yield* Effect.flip(member("_".repeat(60))))._tag, "ConfigurationValidation")
      yield* member("h".repeat(200))
    })
  )
})
