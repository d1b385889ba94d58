/**
 * A group moves from another client to the connector and back, pod by pod, under load, with records in the retry topics (ruling 80). `MOVE_SECONDS` is how long the load goes
 * on after each replacement, with three pods and 2,000 records a second; unless it is set, a short version runs.
 */
import { assert } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import * as Bus from "./bus.ts"
import * as GroupMoves from "./groupMoves.ts"

const seconds = Number(process.env["MOVE_SECONDS"] ?? 0)

KafkaSuite.shared("a group that moves to the connector and back", (bootstrap) => {
  for (const [title, client, old] of [
    ["C51 CLN-08", "kafkajs", GroupMoves.kafkaJs],
    ["CLN-09", "Java's range", () => GroupMoves.java("range", "RangeAssignor")],
    ["CLN-09", "Java's cooperative-sticky", () => GroupMoves.java("cooperative-sticky", "CooperativeStickyAssignor")]
  ] as const) {
    Bus.story(
      bootstrap,
      `${title} from ${client} and back, pod by pod under load: nothing is lost, and only what was in flight in an old pod is repeated`,
      () =>
        Effect.gen(function* () {
          const outcome = yield* GroupMoves.move(bootstrap, client.replaceAll(/\W+/g, "-"), old())
          const { published, phases, lost, repeated, inFlight, inTiers } = outcome
          console.log(
            `${client}: ${published} records, ${lost.length} lost, repeated ${JSON.stringify(repeated)} of ${inFlight} in flight, ${inTiers} handled in retry topics; ` +
              `longest gaps in ms: ${phases.map(({ name, longestGapMillis }) => `${name} ${longestGapMillis}`).join(", ")}`
          )
          assert.deepStrictEqual(lost, [])
          assert.strictEqual(repeated.connector, 0)
          assert.isAtMost(repeated.old, inFlight)
          assert.isAbove(inTiers, 0)
          if (!GroupMoves.isLong) return
          const longest = (isAlone: boolean) =>
            Math.max(
              ...phases.flatMap(({ isOldAlone, longestGapMillis }) =>
                isOldAlone === isAlone ? [longestGapMillis] : []
              )
            )
          // Both come near the heartbeat interval of the old pods, which hear of a rebalance at their next heartbeat. How near is chance.
          assert.isAtMost(longest(false), 1.1 * longest(true))
        }),
      120_000 + 120_000 * seconds
    )
  }
})
