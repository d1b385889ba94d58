/**
 * Dead letters that cannot be published where they came from. They count as refused, stay, and the replay goes on with the others.
 *
 * The broker refuses a copy within a transaction, which is aborted, and the run starts again without the record. So a run learns as much as it can from each refusal: all
 * copies of a transaction are tried before it ends, a topic that takes no copy is not asked again, and records that are likely to be refused are tried many at a time.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Transaction } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import * as FittingCopy from "./fittingCopy.ts"
import { copyOf } from "./replayCopies.ts"
import * as ReplayProgress from "./replayProgress.ts"
import {
  type Copied,
  type Copy,
  CopyRefused,
  type Known,
  keyOf,
  LeaseNeeded,
  makesCopies,
  type Refusal,
  type Run,
  type RunState
} from "./replayRun.ts"
import * as Targets from "./replayTargets.ts"

export const nothingKnown = (): Known => ({
  ...{ closedTopics: new Map(), tooLarge: new Map() },
  ...{ limits: new Map(), tried: new Set() }
})

/** Whether the record stays because it cannot be published. Notes the reason. */
export const isRefused = ({ options, selection, state }: Run, letter: DeadLetterRecord): boolean => {
  // A record that is given up is not published.
  if (!makesCopies(selection)) return false
  const key = keyOf(letter.record)
  if (state.refused.has(key)) return true
  const target = Targets.targetOf(options, selection, letter)
  const reason = target === undefined ? strangersTopic(letter) : state.known.closedTopics.get(target.topic)
  if (reason !== undefined) state.refused.set(key, reason)
  return reason !== undefined
}

const strangersTopic = ({ originalTopic }: DeadLetterRecord): string =>
  `Topic '${originalTopic}' is neither the main topic of the binding nor one of its origins.`

/** Learns from the refusals of a transaction. Answers the error that ends the replay: one that is about no single record or topic. */
export const learn = (state: RunState, { refusals }: CopyRefused, sourceTopic: string): BrokerError | undefined => {
  const before = state.refused.size + state.known.closedTopics.size
  for (const refusal of refusals) learnFrom(state, refusal, sourceTopic)
  return state.refused.size + state.known.closedTopics.size > before ? undefined : refusals[0]?.error
}

const learnFrom = ({ refused, known }: RunState, { record, error }: Refusal, sourceTopic: string): void => {
  switch (error._tag) {
    case "RecordTooLarge":
      known.tooLarge.set(error.topic, Math.min(known.tooLarge.get(error.topic) ?? sizeOf(record), sizeOf(record)))
      refused.set(keyOf(record), error.message)
      return
    case "RecordRejected":
      refused.set(keyOf(record), error.message)
      return
    case "InvalidTopic":
      known.closedTopics.set(error.topic, error.message)
      return
    case "UnknownTopic":
      // Without its main topic, the binding replays nothing.
      if (error.topic !== sourceTopic) known.closedTopics.set(error.topic, error.message)
      return
    case "AuthorizationFailed":
      if (error.resource === "topic" && error.name !== sourceTopic) known.closedTopics.set(error.name, error.message)
  }
}

const sizeOf = ({ key, value }: ConsumerRecord): number => (key?.length ?? 0) + (value?.length ?? 0)

/** The copies of dead letters. One that cannot be made ready has none, and counts as refused. An operator may end the work of making them ready. */
export const copiesOf = (run: Run, letters: ReadonlyArray<DeadLetterRecord>) => {
  const { planned } = run.selection
  const copies = eachCopy(run, letters)
  return planned?.prepare === undefined ? copies : planned.watched(copies)
}

const eachCopy = (run: Run, letters: ReadonlyArray<DeadLetterRecord>) =>
  Effect.forEach(
    letters,
    Effect.fnUntraced(function* (letter) {
      const { prepare } = run.selection.planned ?? {}
      const ready = prepare === undefined ? letter : yield* prepare(letter)
      if (typeof ready === "string") {
        run.state.refused.set(keyOf(letter.record), ready)
        return []
      }
      const target = Targets.targetOf(run.options, run.selection, letter)
      if (target === undefined) return []
      // A record with another key belongs into the partition of that key.
      const partition = ready.key === letter.key ? target.partition : undefined
      return [yield* copyOf(run, ready, { ...target, partition })]
    })
  ).pipe(Effect.map((copies) => copies.flat()))

/** Sends all copies, and fails with all that were refused. */
export const send = Effect.fnUntraced(function* (transaction: Transaction, copies: ReadonlyArray<Copy>) {
  const refusals: Array<Refusal> = []
  const copied = yield* Effect.forEach(
    copies,
    (copy): Effect.Effect<ReadonlyArray<Copied>> =>
      Effect.map(Effect.result(FittingCopy.send(transaction, copy.copy)), (sent) => {
        if (Result.isSuccess(sent)) return [{ ...copy, stored: sent.success }]
        refusals.push({ record: copy.record, error: sent.failure })
        return []
      }),
    { concurrency: "unbounded" }
  )
  if (refusals.length > 0) return yield* Effect.fail(new CopyRefused(refusals))
  return copied.flat()
})

/** Whether a refusal is likely: a replay before this one left the record, or one that is no larger was too large for the topic. */
export const isDoubtful = (
  { options, selection, state }: Run,
  partition: ReplayProgress.PartitionProgress,
  letter: DeadLetterRecord
): boolean => {
  if (!makesCopies(selection) || state.known.tried.has(keyOf(letter.record))) return false
  if (ReplayProgress.isRefused(partition, letter.record)) return true
  const target = Targets.targetOf(options, selection, letter)
  const tooLarge = target === undefined ? undefined : state.known.tooLarge.get(target.topic)
  return tooLarge !== undefined && sizeOf(letter.record) >= tooLarge
}

/** Ends a trial. */
class TrialEnded {
  readonly _tag = "TrialEnded"
}

/** Tries the records in a transaction that is aborted in any case, so that all refused ones together cost as much as one. */
export const tryAll = Effect.fnUntraced(function* (run: Run, letters: ReadonlyArray<DeadLetterRecord>) {
  const { producer } = run
  if (producer === undefined) return yield* Effect.fail(new LeaseNeeded())
  const copies = yield* copiesOf(run, letters)
  const trial = producer.transaction((transaction) =>
    Effect.andThen(send(transaction, copies), Effect.fail(new TrialEnded()))
  )
  yield* Effect.catchIf(trial, isTrialEnd, () => Effect.void)
  for (const { record } of letters) run.state.known.tried.add(keyOf(record))
})

const isTrialEnd = (failed: unknown): failed is TrialEnded => failed instanceof TrialEnded

/** Most reasons that a report names. */
const mostReasons = 20

/** How many records were refused for each reason. Reasons beyond 20 count as `other`. */
export const reasonsOf = ({ refused }: RunState): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const reason of refused.values()) {
    const name = counts.has(reason) || counts.size < mostReasons ? reason : "other"
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return counts
}
