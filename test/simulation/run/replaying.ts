/**
 * An operator's replay of dead letters, and the look at what is left of them.
 */
import type { EventBusConnector, Replay } from "@eventbus/core"
import { Effect, Exit } from "effect"
import * as Copies from "../history/copies.ts"
import type { LetterState } from "../history/History.ts"
import type { ReplayOrder } from "../scenario/Scenario.ts"
import { beginMillis } from "../scenario/Scenario.ts"

type Connector = EventBusConnector.EventBusConnector["Service"]

/** More than a dead letter topic of a run holds. */
const everything = 100_000

/** The number of copies that the replay reports; undefined when it failed. */
export const replay = (
  connector: Connector,
  binding: string,
  partitions: number,
  order: ReplayOrder
): Effect.Effect<number | undefined> =>
  Effect.flatMap(connector.deadLetters(binding), (letters) => ordered(letters, partitions, order)).pipe(
    Effect.exit,
    Effect.map((exit) => (Exit.isSuccess(exit) ? exit.value.replayed : undefined))
  )

const ordered = (letters: Replay.DeadLetters, partitions: number, order: ReplayOrder) => {
  switch (order._tag) {
    case "Next":
      return letters.replay(order.count)
    case "Window":
      return letters.replayWindow(beginMillis + order.fromMillis, beginMillis + order.toMillis)
    case "ToTier":
      return letters.replayToTier(order.tier, order.count)
    case "Chosen":
      return Effect.flatMap(listed(letters, partitions), (all) =>
        letters.replayRecords(
          all
            .filter(({ state }, index) => state === "waiting" && index % order.every === 0)
            .map(({ letter }) => letter.record)
        )
      )
  }
}

/** The dead letters that an operator gives up, by `partition@offset`, and the answer of the command; undefined while there is none. */
export interface GivenUp {
  readonly letters: ReadonlyArray<string>
  readonly discarded: number | undefined
}

/** Gives every so manieth letter up that waits. Reports the letters before the command, which a kill may leave without an answer, and again with its answer. */
export const discard = (
  connector: Connector,
  binding: string,
  partitions: number,
  every: number,
  report: (givenUp: GivenUp) => void
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const letters = yield* connector.deadLetters(binding)
    const wanted = (yield* listed(letters, partitions)).filter(
      ({ state }, index) => state === "waiting" && index % every === 0
    )
    const records = wanted.map(({ letter }) => letter.record)
    const chosen = records.map(({ topic, partition, offset }) => `${topic}/${partition}@${offset}`)
    report({ letters: chosen, discarded: undefined })
    report({ letters: chosen, discarded: yield* letters.discard(records, "nobody needs them") })
  }).pipe(Effect.exit, Effect.asVoid)

/** Deletes the letters that are older than some time, where the cluster and their owners allow it. */
export const purge = (connector: Connector, binding: string, beforeMillis: number) =>
  Effect.flatMap(connector.deadLetters(binding), (letters) => letters.purge(beforeMillis)).pipe(Effect.ignore)

const listed = (letters: Replay.DeadLetters, partitions: number) =>
  Effect.map(
    Effect.forEach(Array.from({ length: partitions }), (_, partition) =>
      letters.list({ partition, count: everything })
    ),
    (pages) => pages.flat()
  )

/** The dead letters of a binding as an operator sees them; undefined when they cannot be read. */
export const look = (
  connector: Connector,
  binding: string,
  partitions: number
): Effect.Effect<ReadonlyArray<LetterState> | undefined> =>
  Effect.flatMap(connector.deadLetters(binding), (letters) => listed(letters, partitions)).pipe(
    Effect.exit,
    Effect.map((exit) =>
      Exit.isSuccess(exit)
        ? exit.value.flatMap(({ letter, state }) => {
            const copy = Copies.read(letter.record)
            const { topic, partition, offset } = letter.record
            const at = `${topic}/${partition}@${offset}`
            return copy === undefined ? [] : [{ at, id: copy.id, replays: Copies.replaysOf(copy), state }]
          })
        : undefined
    )
  )
