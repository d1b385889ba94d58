import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Binding, type BindingOptions, RetryPolicy, Serde } from "../../src/index.ts"
import * as GroupProtocol from "../../src/internal/checks/groupProtocol.ts"
import * as Validation from "../../src/internal/checks/validation.ts"

const problems = (more: Partial<BindingOptions.CommonSettings>) =>
  Validation.problems(
    Binding.make("orders", {
      ...{ topic: "orders", groupId: "billing", groupProtocol: "consumer", value: Serde.string, ...more },
      handler: () => Effect.void
    }).definition
  ).map(({ path, found, allowed }) => `${path}: ${found}; ${allowed}`)

describe("a binding whose group the broker assigns", () => {
  it("CLN-10 has the defaults of the others, and static members", () => {
    assert.deepStrictEqual(problems({}), [])
    assert.deepStrictEqual(problems({ staticMembership: true, rebalanceTimeout: "2 minutes" }), [])
  })

  it("CLN-10 refuses what the group and the brokers configure, and says where", () => {
    const given = {
      sessionTimeout: "1 minute",
      heartbeatInterval: "3 seconds",
      partitionAssignmentStrategy: ["eventbus-cooperative-sticky", "range"],
      retry: RetryPolicy.tiered({ consumer: "separate" })
    } as const
    assert.deepStrictEqual(problems(given), [
      'sessionTimeout: 60000 ms; the default with groupProtocol "consumer": the group configures it (consumer.session.timeout.ms, and group.consumer.session.timeout.ms of the brokers)',
      'heartbeatInterval: 3000 ms; the default with groupProtocol "consumer": the group configures it (consumer.heartbeat.interval.ms, and group.consumer.heartbeat.interval.ms of the brokers)',
      'partitionAssignmentStrategy: ["eventbus-cooperative-sticky","range"]; ["eventbus-cooperative-sticky"] with groupProtocol "consumer": the broker assigns (group.consumer.assignors of the brokers)'
    ])
    assert.deepStrictEqual(problems({ ...given, groupProtocol: "classic" }), [])
  })

  it("CLN-10 refuses another protocol than the two", () => {
    assert.deepStrictEqual(problems({ groupProtocol: "share" as "classic" }), [
      'groupProtocol: \'share\'; "classic" or "consumer"'
    ])
  })

  it("CLN-12 a plan says that the broker moves a group of the classic protocol, and nothing of one that has moved", () => {
    const member = { memberId: "m", groupInstanceId: undefined, clientId: "shop", assignment: [] }
    const group = { groupId: "billing", state: "Stable", protocol: "range", members: [member] } as const
    const [finding, ...rest] = GroupProtocol.findingsOfBroker({ ...group, type: "classic" })
    assert.deepStrictEqual(rest, [])
    assert.strictEqual(finding?.severity, "info")
    assert.include(finding?.message ?? "", "Group 'billing' has 1 member of client 'shop' in the classic protocol")
    assert.deepStrictEqual(GroupProtocol.findingsOfBroker({ ...group, type: "consumer" }), [])
    assert.deepStrictEqual(GroupProtocol.findingsOfBroker({ ...group, type: "classic", members: [] }), [])
  })
})
