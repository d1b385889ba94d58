/** Outcomes: members that list other assignment protocols than the connector's own. */
import { Broker } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { assert } from "vitest"
import { admin, assertTag, eventually, eventuallyTrue, failure, type Outcome, topic, unique } from "./harness.ts"
import { join, shared } from "./probe.ts"

/** In a group that the broker assigns, members list no protocols. */
const byMembers: Outcome["needs"] = ({ assignment }) => assignment === "members"

export const assignmentStrategies: ReadonlyArray<Outcome> = [
  {
    title: "ruling 80: a member that lists an eager protocol gives up all partitions before it joins again",
    needs: ({ assignment, handover }) => assignment === "members" && handover === "released",
    run: Effect.gen(function* () {
      const name = yield* topic(4)
      const groupId = unique("group")
      const listed = ["eventbus-cooperative-sticky", "range"] as const
      const options = {
        ...{ groupId, topics: [name], partitionAssignmentStrategy: listed },
        sessionTimeout: "6 seconds",
        heartbeatInterval: "1 second",
        rebalanceTimeout: "20 seconds"
      } as const
      const first = yield* join({ ...options, onRevoked: "hold" })
      yield* first.owns(4)
      const second = yield* join(options)
      yield* eventuallyTrue(() =>
        assert.strictEqual(first.of("Revoked").flatMap(({ partitions }) => partitions).length, 4)
      )
      // They belong to it until they are released: it may still commit, and nobody else gets one.
      yield* eventually(first.commit(name, 3, 7n))
      // Longer than the session: heartbeats go on meanwhile.
      yield* Effect.sleep("8 seconds")
      assert.strictEqual(second.owned.size, 0)
      for (const revoked of first.of("Revoked")) yield* first.release(revoked)
      yield* shared([first, second], [2, 2])
      assert.deepStrictEqual(first.of("Lost"), [])
      const moved = [...first.owned.values(), ...second.owned.values()].find(({ partition }) => partition === 3)
      assert.strictEqual(moved?.committed, 7n)
    })
  },
  {
    title: "ruling 80: the members use the first protocol that all of them list",
    needs: byMembers,
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const groupId = unique("group")
      const both = ["eventbus-cooperative-sticky", "cooperative-sticky"] as const
      const first = yield* join({ groupId, topics: [name], partitionAssignmentStrategy: both })
      yield* first.owns(2)
      const second = yield* join({ groupId, topics: [name], partitionAssignmentStrategy: ["cooperative-sticky"] })
      yield* shared([first, second], [1, 1])
      const { describeGroup } = yield* admin
      yield* eventually(
        Effect.map(describeGroup(groupId), ({ protocol }) => assert.strictEqual(protocol, "cooperative-sticky"))
      )
    })
  },
  {
    title:
      "CLN-07 ruling 80: a group refuses a member that lists none of its protocols; the error names the group, its clients, both protocols and the next step",
    needs: byMembers,
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const groupId = unique("group")
      const first = yield* join({ groupId, topics: [name], clientId: "other", partitionAssignmentStrategy: ["range"] })
      yield* first.owns(2)
      const broker = yield* Broker.Broker
      const late = Effect.scoped(
        Effect.flatMap(broker.consumer({ groupId, topics: [name] }), ({ events }) => Effect.forever(Queue.take(events)))
      )
      const error = yield* failure(late)
      assertTag(error, "UnexpectedBrokerError")
      assert.include(error.message, "INCONSISTENT_GROUP_PROTOCOL")
      assert.include(error.message, `group '${groupId}' has 1 member of client '`)
      assert.include(
        error.message,
        "whose assignment protocol is 'range'; this member lists 'eventbus-cooperative-sticky'"
      )
      assert.include(error.message, "set partitionAssignmentStrategy to [eventbus-cooperative-sticky, range]")
    })
  }
]
