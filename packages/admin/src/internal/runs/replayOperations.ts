/** Replays without a plan, statistics and purges, over the connector. */
import type { Replay } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as AnswersOf from "../answersOf.ts"
import type { Letters } from "../lettersOfTopic.ts"

export const make = (connector: Letters) => {
  const onLetters = <A, E>(name: string, run: (letters: Replay.DeadLetters) => Effect.Effect<A, E>) =>
    Effect.flatMap(connector.deadLetters(name), run)
  const replayed = <E>(name: string, run: (letters: Replay.DeadLetters) => Effect.Effect<Replay.Report, E>) =>
    Effect.map(onLetters(name, run), AnswersOf.replayReportOf)

  return {
    replay: (name: string, count: number) => replayed(name, (letters) => letters.replay(count)),
    replayWindow: (name: string, from: number, to: number) =>
      replayed(name, (letters) => letters.replayWindow(from, to)),
    replayToTier: (name: string, tier: number, count: number) =>
      replayed(name, (letters) => letters.replayToTier(tier, count)),
    stats: (name: string) =>
      Effect.map(
        onLetters(name, (letters) => letters.stats),
        AnswersOf.statsOf
      ),
    purge: (name: string, before: number) =>
      Effect.map(
        onLetters(name, (letters) => letters.purge(before)),
        (purged) => ({ purged })
      )
  }
}
