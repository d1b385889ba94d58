import { assert, describe, it } from "@effect/vitest"
import type { AssignmentStrategy, GroupDescription } from "../../src/Broker.ts"
import * as GroupProtocol from "../../src/internal/checks/groupProtocol.ts"

const group = (protocol: string, clients: ReadonlyArray<string>, type: GroupDescription["type"] = "classic") => ({
  ...{ groupId: "billing", type, state: "Stable" as const, protocol },
  members: clients.map((clientId, index) => ({
    ...{ memberId: `m-${index}`, groupInstanceId: undefined, clientId, assignment: [] }
  }))
})

const own = "eventbus-cooperative-sticky"
const both: ReadonlyArray<AssignmentStrategy> = [own, "RoundRobinAssigner"]
const mixed = ["eventbus", "plain", "plain"]

describe("a group with other clients", () => {
  it("CLN-07 ruling 80 a refusal names the group, its clients, both protocols and the next step", () => {
    assert.strictEqual(
      GroupProtocol.refusal([own], group("RoundRobinAssigner", ["plain", "eventbus", "plain"])),
      "group 'billing' has 2 members of client 'plain', 1 member of client 'eventbus', whose assignment protocol is 'RoundRobinAssigner'; this member lists " +
        "'eventbus-cooperative-sticky'. Step 1 of moving the group: set partitionAssignmentStrategy to [eventbus-cooperative-sticky, RoundRobinAssigner] (docs/guide/move-from-kafkajs.md)"
    )
  })

  it.each([
    ["own-assigner", ["plain"], "The connector has no protocol 'own-assigner': let the other client list one of"],
    ["", ["plain"], "Let all members list one protocol"],
    [own, ["eventbus"], `Another member does not list '${own}': let all members list it`],
    ["", [], "group 'billing' had members that list none of its assignment protocols"]
  ] as const)("ruling 80 what to do about protocol '%s' of %s", (protocol, clients, words) => {
    assert.include(GroupProtocol.refusal([own], group(protocol, clients)), words)
  })

  it("C51 CLN-08 old and new processes of one client id are counted apart, and step 1 says how far it is", () => {
    const { members, ...rest } = group("RoundRobinAssigner", ["orders", "orders", "orders"])
    const stepOne = (replaced: number) => {
      const described = { ...rest, members: members.map((member, at) => ({ ...member, isConnector: at < replaced })) }
      return GroupProtocol.findings(both, described).map(({ message }) => message)[0]
    }
    assert.include(stepOne(0), "has 3 members of client 'orders', on 'RoundRobinAssigner'")
    assert.include(stepOne(0), "0 of 3 members are of the connector")
    assert.include(stepOne(1), "has 2 members of client 'orders', 1 member of client 'orders' (the connector), on")
    assert.include(stepOne(1), "1 of 3 members is of the connector")
    assert.notInclude(GroupProtocol.findings(both, { ...rest, members })[0]?.message, "of 3 members")
  })

  it.each<[string, ReadonlyArray<AssignmentStrategy>, GroupDescription, string | undefined]>([
    ["nobody is in the group", both, group("", []), undefined],
    ["no other client is concerned", [own], group(own, ["eventbus"]), undefined],
    [
      "step 1 is to be done",
      [own],
      group("RoundRobinAssigner", mixed),
      "error: Group 'billing' has 2 members of client 'plain', 1"
    ],
    [
      "step 1 goes on",
      both,
      group("RoundRobinAssigner", mixed),
      "info: Group 'billing' has 2 members of client 'plain', 1 member of client 'eventbus', on 'RoundRobinAssigner'"
    ],
    [
      "step 1 is complete",
      both,
      group(own, ["eventbus"]),
      "Step 2: remove 'RoundRobinAssigner' from partitionAssignmentStrategy"
    ],
    [
      "the group rebalances",
      both,
      group("", mixed),
      "info: Group 'billing' has 2 members of client 'plain', 1 member of client 'eventbus', and is rebalancing"
    ],
    ["the broker assigns", [own], group("uniform", mixed, "consumer"), "the broker assigns (group.protocol=consumer)"],
    ["the group is shared for good", ["range"], group("range", mixed), undefined],
    [
      "a Java client on 'range' may list 'cooperative-sticky', too, as its default does",
      [own, "cooperative-sticky"],
      group("range", mixed),
      "warning: Group 'billing' has 2 members of client 'plain', 1 member of client 'eventbus', on 'range', and the binding lists 'eventbus-cooperative-sticky', 'cooperative-sticky'. " +
        "It can join when the other clients list 'cooperative-sticky', too"
    ],
    [
      "the list with the present protocol always fits",
      [own, "cooperative-sticky"],
      group("range", mixed),
      "set partitionAssignmentStrategy to [eventbus-cooperative-sticky, cooperative-sticky, range]: that always fits"
    ],
    [
      "a group of kafkajs has no protocol of Java in common",
      [own, "cooperative-sticky"],
      group("RoundRobinAssigner", mixed),
      "error: Group 'billing' has"
    ],
    ["a binding without a protocol of Java cannot join", [own], group("range", mixed), "error: Group 'billing' has"]
  ])("C51 plan --check knows that %s", (_, listed, description, expected) => {
    const found = GroupProtocol.findings(listed, description)
    assert.strictEqual(found.length, expected === undefined ? 0 : 1)
    if (expected !== undefined) assert.include(`${found[0]?.severity}: ${found[0]?.message}`, expected)
  })
})
