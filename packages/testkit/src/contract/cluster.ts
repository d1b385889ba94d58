/** Outcomes: what a cluster says of itself. */
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import { admin, type Outcome, topic, unique } from "./harness.ts"
import { join } from "./probe.ts"

export const cluster: ReadonlyArray<Outcome> = [
  {
    title: "C33 ruling 70 the cluster says its id, and every admin and every consumer the same one",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const { clusterId } = yield* admin
      assert.match(clusterId, /^[^/]+$/)
      assert.strictEqual((yield* admin).clusterId, clusterId)
      const { session } = yield* join({ groupId: unique("group"), topics: [name] })
      assert.strictEqual(session.clusterId, clusterId)
    })
  },
  {
    title:
      "MSG-47 a cluster describes itself: its id, its brokers with their addresses, and one of them as the controller",
    run: Effect.gen(function* () {
      const administrator = yield* admin
      const { clusterId, brokers, controller } = yield* administrator.describeCluster
      assert.strictEqual(clusterId, administrator.clusterId)
      assert.isAtLeast(brokers.length, 1)
      for (const { id, host, port } of brokers) {
        assert.isTrue(Number.isInteger(id) && host !== "" && port >= 1 && port <= 65_535, `${host}:${port} (id=${id})`)
      }
      assert.strictEqual(new Set(brokers.map(({ id }) => id)).size, brokers.length)
      assert.deepInclude(brokers, controller)
    })
  }
]
