/**
 * Dead letters before and after one of the binding's transforms, both as today's serdes read them. It calls the function as a run does, and publishes nothing.
 */
import * as Effect from "effect/Effect"
import type { BrokerError } from "../../BrokerError.ts"
import type { DecodedDeadLetter } from "../../DeadLetterList.ts"
import type * as DeadLetterSelection from "../../DeadLetterSelection.ts"
import type { LetterTransform, Preview } from "../../LetterTransform.ts"
import type { InvalidArgument } from "../../Replay.ts"
import * as Arguments from "../replay/arguments.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import * as RequestIssues from "../runs/requestIssues.ts"
import * as Transforms from "../runs/transforms.ts"
import type { LettersTarget } from "./lettersTarget.ts"
import * as OneLetter from "./oneLetter.ts"

/** Most dead letters of one call: it keeps the values of all of them. */
const mostLetters = 20

interface Functions {
  readonly serdes: OneLetter.Serdes
  readonly transforms: ReadonlyMap<string, LetterTransform<unknown, unknown>>
}

/** In the order of the positions, without those that have no record. */
export const transformed = Effect.fnUntraced(function* (
  target: LettersTarget,
  { serdes, transforms }: Functions,
  asked: ReadonlyArray<DeadLetterSelection.Position>,
  name: string
): Effect.fn.Return<ReadonlyArray<Preview>, BrokerError | InvalidArgument> {
  const positions = yield* Arguments.positions("transformed", "positions", asked)
  yield* Arguments.within("transformed", "positions.length", positions.length, [0, mostLetters])
  const transform = transforms.get(name)
  if (transform === undefined) {
    const names = RequestIssues.transformNames(Array.from(transforms.keys()))
    return yield* Arguments.refuse("transformed", "transform", name, names)
  }
  const prepare = Transforms.prepare({ name, transform, serdes })
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const loaded = yield* ReplayProgress.load(target, yield* target.broker.admin)
      const found = yield* Effect.forEach(positions, (position) => OneLetter.at(target, serdes, loaded, position))
      const letters = found.filter((letter) => letter !== undefined)
      // A function that does not end takes 30 seconds of each.
      return yield* Effect.forEach(letters, (letter) => preview(serdes, prepare, letter), { concurrency: 5 })
    })
  )
})

const preview = Effect.fnUntraced(function* (
  serdes: OneLetter.Serdes,
  prepare: ReturnType<typeof Transforms.prepare>,
  before: DecodedDeadLetter
): Effect.fn.Return<Preview> {
  if (before.unreadable !== undefined) return { _tag: "Stays", before, reason: "Its batch cannot be read" }
  const letter = yield* prepare(before.letter)
  if (typeof letter === "string") return { _tag: "Stays", before, reason: letter }
  return { _tag: "Copied", before, after: { letter, ...(yield* OneLetter.decoded(serdes, letter)) } }
})
