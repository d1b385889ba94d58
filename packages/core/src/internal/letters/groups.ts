/**
 * Groups the dead letters of a topic in one pass. Nothing of a record is kept but texts of its headers, so that the pass needs the same memory however large the values are.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { BrokerError } from "../../BrokerError.ts"
import { type GroupReport, type GroupState, states as groupStates, type Options } from "../../DeadLetterGroup.ts"
import * as DeadLetterSelection from "../../DeadLetterSelection.ts"
import type { InvalidArgument } from "../../Replay.ts"
import * as Arguments from "../replay/arguments.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import * as TopicScan from "../replay/topicScan.ts"
import { GroupTally } from "./groupTally.ts"
import { type LettersTarget, read, wholeOf } from "./lettersTarget.ts"

export const groups = Effect.fnUntraced(function* (
  target: LettersTarget,
  options: Options = {}
): Effect.fn.Return<GroupReport, BrokerError | InvalidArgument> {
  const { selection: asked, states } = yield* Arguments.options("groups", "options", options, ["selection", "states"])
  yield* Arguments.states("groups", states, groupStates)
  const selection = asked === undefined ? undefined : yield* Arguments.selection("groups", asked)
  const isSelected = selection === undefined ? () => true : DeadLetterSelection.matches(selection)
  const isAskedFor = (state: GroupState) => states === undefined || states.includes(state)
  const tally = new GroupTally(yield* Clock.currentTimeMillis)
  yield* Effect.scoped(
    Effect.gen(function* () {
      const { partitions, scan } = yield* ReplayProgress.load(target, yield* target.broker.admin)
      for (const progress of partitions) {
        yield* Stream.runForEach(scan.pages(wholeOf(target, progress)), (page) =>
          Effect.sync(() => {
            tally.unreadable += TopicScan.unreadableOffsets(page, 0n)
            for (const record of page.records) {
              const { letter, state } = read(target, progress, record)
              if (state === "unreadable") continue
              if (state === "foreign") tally.foreign++
              else if (isAskedFor(state) && isSelected(letter)) {
                tally.add(letter, state, state === "dealt-with" && ReplayProgress.isDiscarded(progress, record))
              }
            }
          })
        )
      }
    })
  )
  return tally.report()
})
