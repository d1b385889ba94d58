/** The protocol of a group in a file. */
import { assert, describe, it } from "@effect/vitest"
import { Configuration } from "@eventbus/config"
import { Effect } from "effect"
import { issuesOf, withOrders } from "../issues.ts"

const protocolOf = (configuration: Configuration.Configuration) =>
  Configuration.withoutHandlers(configuration)[0]!.definition.groupProtocol

describe("the protocol of a group in a file", () => {
  it.effect("CLN-10 is classic, or what the binding or a variable says", () =>
    Effect.gen(function* () {
      assert.strictEqual(protocolOf(yield* Configuration.parse(withOrders())), "classic")
      assert.strictEqual(protocolOf(yield* Configuration.parse(withOrders("group-protocol: consumer"))), "consumer")
      const env = { EVENTBUS_BINDINGS_ORDERS_GROUP_PROTOCOL: "consumer" }
      assert.strictEqual(protocolOf(yield* Configuration.parse(withOrders(), { env })), "consumer")
    })
  )

  it.effect("CLN-10 refuses what the group configures, by the keys of the file", () =>
    Effect.gen(function* () {
      for (const [line, path] of [
        ["session-timeout-ms: 60000", "sessionTimeoutMs"],
        ["heartbeat-interval-ms: 3000", "heartbeatIntervalMs"]
      ] as const) {
        const issues = yield* issuesOf(Configuration.parse(withOrders("group-protocol: consumer", line)))
        assert.strictEqual(issues.length, 1, line)
        assert.isTrue(issues[0]!.startsWith(`eventbus.bindings.orders.${path}: `), issues[0])
        assert.include(issues[0], 'with groupProtocol "consumer"')
      }
    })
  )
})
