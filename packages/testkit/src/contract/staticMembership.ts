/** Outcomes: members with a `groupInstanceId` (KIP-345). */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { assert } from "vitest"
import { eventually, eventuallyTrue, type Outcome, quietTime, topic, unique } from "./harness.ts"
import { failedWith, join, shared } from "./probe.ts"

export const staticMembership: ReadonlyArray<Outcome> = [
  {
    title: "REB-08: a static member that comes back in time gets its partitions back, and the others notice nothing",
    needs: ({ staticMembership }) => staticMembership === "supported",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const groupId = unique("group")
      const stays = yield* join({ groupId, topics: [name], groupInstanceId: "stays", sessionTimeout: "12 seconds" })
      yield* stays.owns(2)
      const options = { groupId, topics: [name], groupInstanceId: "returns", sessionTimeout: "12 seconds" } as const
      const before = yield* Effect.scoped(
        Effect.gen(function* () {
          const returns = yield* join(options)
          yield* shared([stays, returns], [1, 1])
          return returns.partitions
        })
      )
      const events = stays.events.length
      const back = yield* join(options)
      yield* back.owns(1)
      assert.deepStrictEqual(back.partitions, before)
      yield* quietTime
      assert.strictEqual(stays.events.length, events)
    })
  },
  {
    title:
      "ruling 81: a member that replaces a former groupInstanceId has its partitions at once; a former one that lives stays in the group beside it",
    needs: ({ staticMembership }) => staticMembership === "supported",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const groupId = unique("group")
      const options = { groupId, topics: [name], sessionTimeout: "30 seconds" } as const
      yield* Effect.scoped(
        Effect.gen(function* () {
          const gone = yield* join({ ...options, groupInstanceId: "a-b-0" })
          yield* gone.owns(2)
        })
      )
      const next = yield* join({ ...options, groupInstanceId: "a__b__0", replacesGroupInstanceIds: ["a-b-0", "other"] })
      yield* next.owns(2)
      const lives = yield* join({ ...options, groupInstanceId: "a-b-1" })
      yield* shared([next, lives], [1, 1])
      const second = yield* join({ ...options, groupInstanceId: "a__b__1", replacesGroupInstanceIds: ["a-b-1"] })
      yield* eventuallyTrue(() =>
        assert.strictEqual(next.partitions.length + lives.partitions.length + second.partitions.length, 2)
      )
      assert.isUndefined(failedWith(lives))
    })
  },
  {
    title: "REB-08: of two members with one groupInstanceId the older is fenced",
    needs: ({ assignment, staticMembership }) => assignment === "members" && staticMembership === "supported",
    run: Effect.gen(function* () {
      const name = yield* topic(1)
      const options = { groupId: unique("group"), topics: [name], groupInstanceId: "twin" }
      const older = yield* join(options)
      yield* older.owns(1)
      const newer = yield* join(options)
      yield* newer.owns(1)
      yield* eventuallyTrue(() => assert.strictEqual(failedWith(older)?._tag, "InstanceFenced"))
      yield* eventually(newer.commit(name, 0, 1n))
    })
  },
  {
    title:
      "ruling 81: a static member that the group has removed is fenced once another one has its name, and does not take it back",
    needs: ({ assignment, staticMembership }) => assignment === "members" && staticMembership === "supported",
    run: Effect.gen(function* () {
      const name = yield* topic(1)
      const options = { groupId: unique("group"), topics: [name], sessionTimeout: "30 seconds" } as const
      const twin = { ...options, groupInstanceId: "twin" }
      const older = yield* join({ ...twin, heartbeatInterval: "5 seconds" })
      yield* older.owns(1)
      // It removes the older one, which learns of that at its next heartbeat.
      yield* Effect.scoped(join({ ...options, groupInstanceId: "other", replacesGroupInstanceIds: ["twin"] }))
      const newer = yield* join(twin)
      yield* eventuallyTrue(() => assert.strictEqual(failedWith(older)?._tag, "InstanceFenced"))
      yield* quietTime
      assert.isUndefined(failedWith(newer))
    })
  },
  {
    title:
      "ruling 81: a session that may not join any more goes on as the member that it is, and stays outside once the group has removed it",
    needs: ({ staticMembership }) => staticMembership === "supported",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const options = { groupId: unique("group"), topics: [name], sessionTimeout: "30 seconds" } as const
      let stops = false
      const stopping = yield* join({ ...options, groupInstanceId: "stops", mayJoin: () => !stops })
      yield* stopping.owns(2)
      stops = true
      const next = yield* join({ ...options, groupInstanceId: "next" })
      yield* shared([stopping, next], [1, 1])
      const last = yield* join({ ...options, groupInstanceId: "last", replacesGroupInstanceIds: ["stops"] })
      yield* shared([next, last], [1, 1])
      const outside = yield* join({ ...options, groupInstanceId: "outside", mayJoin: () => false })
      yield* quietTime
      assert.deepStrictEqual([stopping.owned.size, outside.events], [0, []])
      yield* shared([next, last], [1, 1])
      assert.isUndefined(failedWith(stopping))
    })
  },
  {
    title:
      "CLN-11: of two members with one groupInstanceId the newer waits until the older has closed, and the older notices nothing",
    needs: ({ assignment, staticMembership }) => assignment === "broker" && staticMembership === "supported",
    run: Effect.gen(function* () {
      const name = yield* topic(1)
      const options = { groupId: unique("group"), topics: [name], groupInstanceId: "twin" }
      const scope = yield* Effect.acquireRelease(Scope.make(), (scope) => Scope.close(scope, Exit.void))
      const older = yield* Scope.provide(join(options), scope)
      yield* older.owns(1)
      const newer = yield* join(options)
      yield* quietTime
      yield* eventually(older.commit(name, 0, 1n))
      assert.strictEqual(newer.owned.size, 0)
      yield* Scope.close(scope, Exit.void)
      yield* newer.owns(1)
      assert.strictEqual(newer.own(name).committed, 1n)
      assert.deepStrictEqual(older.of("Lost"), [])
    })
  }
]
