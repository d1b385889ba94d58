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
  Effect.gen(function* () {
    const letters = yield* connector.deadLetters(binding)
    const { replayed } = yield* ordered(letters, partitions, order)
    return replayed
  }).pipe(
    Effect.exit,
    Effect.map((exit) => (Exit.isSuccess(exit) ? exit.value : undefined))
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
            return copy === undefined ? [] : [{ id: copy.id, replays: Copies.replaysOf(copy), state }]
          })
        : undefined
    )
  )
