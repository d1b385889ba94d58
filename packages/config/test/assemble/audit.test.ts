import { assert, describe, it } from "@effect/vitest"
import { Configuration, Handlers } from "@eventbus/config"
import { Audit, Clusters } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Context, Effect, Layer, Option } from "effect"

const bindings = "  bindings: { orders: { topic: orders, group-id: billing } }"
const handlers = Handlers.make({ orders: () => Effect.void })

describe("an audit log in a file", () => {
  it.effect("OPS-25 CFG-09 an empty section has all defaults, and a file without one audits nothing", () =>
    Effect.gen(function* () {
      const { audit } = yield* Configuration.parse(`eventbus:\n  audit: {}\n${bindings}`)
      assert.deepStrictEqual(audit, {
        ...{ cluster: "default", topic: "__eventbus.audit", whenUnwritable: "refuse", timeout: 5_000 }
      })
      assert.isFalse("audit" in (yield* Configuration.parse(`eventbus:\n${bindings}`)))
    })
  )

  it.effect("OPS-25 the layer provides the audit log that the file names, beside the connector", () =>
    Effect.gen(function* () {
      for (const [section, topic] of [
        ["  audit: { topic: who-did-what }\n", "who-did-what"],
        ["", undefined]
      ]) {
        const config = yield* Configuration.parse(`eventbus:\n${section}${bindings}`)
        const context = yield* Layer.build(
          Configuration.layer(config, handlers).pipe(Layer.provide(MemoryBroker.layer()))
        )
        const audit = Option.getOrUndefined(Context.getOption(context as Context.Context<never>, Audit.Audit))
        assert.strictEqual(audit?.topic, topic)
      }
    })
  )

  it.effect("CFG-04 mistakes are named with path, value and what is allowed", () =>
    Effect.gen(function* () {
      const issuesOf = (text: string) =>
        Effect.map(Effect.flip(Configuration.parse(text)), ({ issues }) =>
          issues.map(({ path, found, allowed }) => `${path} ${found} ${allowed}`)
        )
      assert.deepStrictEqual(yield* issuesOf(`eventbus:\n  audit: { when-unwritable: ignore }\n${bindings}`), [
        'eventbus.audit.whenUnwritable "ignore" refuse or proceed'
      ])
      const config = yield* Configuration.parse(`eventbus:\n  audit: { cluster: west }\n${bindings}`)
      const clusters = Clusters.layer({ default: MemoryBroker.layer() })
      const error = yield* Effect.flip(
        Effect.scoped(Layer.build(Configuration.layer(config, handlers).pipe(Layer.provide(clusters))))
      )
      assert.include(error.message, 'eventbus.audit.cluster: found "west", allowed is one of default')
    })
  )
})
