/**
 * Looks which letters a plan takes, and what would become of each, without a lease and without a change. It decides by the rules of the replay itself, so that a preview says
 * what the run does.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Admin } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import * as DeadLetterRecord from "../../DeadLetterRecord.ts"
import type { Position } from "../../DeadLetterSelection.ts"
import * as Attempts from "../replay/replayAttempts.ts"
import { rangeOf } from "../replay/replayPartition.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import * as Refusals from "../replay/replayRefusals.ts"
import { makesCopies, type Run, type RunState } from "../replay/replayRun.ts"
import * as Sizes from "../replay/replaySizes.ts"
import * as Targets from "../replay/replayTargets.ts"
import * as Verdicts from "../replay/replayVerdicts.ts"
import * as TopicScan from "../replay/topicScan.ts"
import * as Anchors from "./anchors.ts"
import * as Hashes from "./hashes.ts"
import * as PlanSelection from "./planSelection.ts"
import * as Positions from "./positions.ts"
import type { Request } from "./requests.ts"
import type { Options } from "./runOptions.ts"

export interface Survey {
  readonly count: number
  /** SHA-256 over the positions of all letters that are taken. */
  readonly digest: string
  /** The last letter that is taken of each partition (`anchors.ts`). */
  readonly anchors: ReadonlyArray<string>
  readonly sample: ReadonlyArray<Position>
  readonly targets: ReadonlyMap<string, number>
  readonly refusals: ReadonlyMap<string, number>
  readonly passedOver: number
  readonly unreadable: number
  /** The ends of the partitions up to which it looked. */
  readonly ends: ReadonlyArray<Position>
  /** Undefined where the cluster gives none, and for a topic without records. */
  readonly topicId: string | undefined
}

/** Most positions of a sample. */
const sampleSize = 20

/** Surveys up to the given ends, or up to all that can be read now. */
export const make = Effect.fnUntraced(function* (
  options: Options,
  admin: Admin,
  request: Request,
  ends?: ReadonlyArray<Position>
): Effect.fn.Return<Survey, BrokerError, Scope.Scope> {
  const upTo = ends ?? (yield* readableEnds(admin, options.deadLetterTopic))
  const selection = yield* PlanSelection.selectionOf(options, admin, request, toMap(upTo))
  const state = Attempts.newState()
  const progress = yield* ReplayProgress.load(options, admin)
  const run: Run = { options, selection, state, progress, admin, producer: undefined, partitionCounts: new Map() }
  yield* noteMissing(run, PlanSelection.mayWriteTo(options, request))
  const tally = new Tally(run)
  const looksAtSizes = makesCopies(selection) && request.transform === undefined
  for (const partition of progress.partitions) yield* survey(run, partition, tally, looksAtSizes)
  return {
    ...{ count: tally.taken.length, digest: yield* Hashes.ofLines(tally.taken) },
    ...{ anchors: Array.from(tally.last.values(), Anchors.textOf) },
    sample: Positions.read(tally.taken.slice(0, sampleSize)),
    ...{ targets: tally.targets, refusals: Refusals.reasonsOf(state) },
    ...{ passedOver: tally.passedOver, unreadable: tally.unreadable, ends: upTo },
    topicId: yield* topicIdOf(options, admin)
  }
})

/** The id of the dead letter topic. Undefined where the cluster gives none, and for a topic without records. */
export const topicIdOf = Effect.fnUntraced(function* (
  { broker, deadLetterTopic: topic }: Pick<Options, "broker" | "deadLetterTopic">,
  admin: Admin
): Effect.fn.Return<string | undefined, BrokerError, Scope.Scope> {
  const logs = yield* ReplayProgress.logOffsetsOf(admin, topic)
  const found = logs.find(({ logStart, logEnd }) => logStart < logEnd)
  if (found === undefined) return undefined
  const { topicId } = yield* TopicScan.open({ broker, admin })
  return yield* topicId({ topic, partition: found.partition, offset: found.logStart })
})

export const toMap = (ends: ReadonlyArray<Position>): ReadonlyMap<number, bigint> =>
  new Map(ends.map(({ partition, offset }) => [partition, offset]))

/** Letters of an open transaction are later ones. */
const readableEnds = (admin: Admin, topic: string): Effect.Effect<ReadonlyArray<Position>, BrokerError> =>
  admin.topicOffsets(topic, "read_committed").pipe(
    Effect.map((offsets) => offsets.map(({ partition, logEnd }) => ({ partition, offset: logEnd }))),
    Effect.catchTag("UnknownTopic", () => Effect.succeed([]))
  )

/** Notes which targets do not exist, or may not be looked at. Without the main topic nothing is replayed. */
const noteMissing = ({ options, admin, state }: Run, topics: ReadonlyArray<string>) =>
  Effect.forEach(
    topics,
    (topic) =>
      Effect.catchIf(
        Effect.asVoid(admin.describeTopic(topic)),
        ({ _tag }) => topic !== options.sourceTopic && (_tag === "UnknownTopic" || _tag === "AuthorizationFailed"),
        ({ message }) => Effect.sync(() => noteClosed(state, topic, message))
      ),
    { discard: true }
  )

const noteClosed = ({ known }: RunState, topic: string, reason: string): void =>
  void known.closedTopics.set(topic, reason)

class Tally {
  /** The positions of the letters that are taken, in order. */
  readonly taken: Array<string> = []
  /** The last of them, by partition. Not the record: it holds the bytes of the whole fetch. */
  readonly last = new Map<number, Anchors.Anchor>()
  readonly targets = new Map<string, number>()
  passedOver = 0
  unreadable = 0
  readonly #run: Run

  constructor(run: Run) {
    this.#run = run
  }

  add(letter: DeadLetterRecord.DeadLetterRecord, verdict: Verdicts.Verdict): void {
    if (verdict === "exhausted") this.passedOver++
    if (verdict !== "take") return
    this.taken.push(Positions.textOf(letter.record))
    const { partition, offset, timestamp } = letter.record
    this.last.set(partition, { partition, offset, timestamp })
    const { options, selection } = this.#run
    if (!makesCopies(selection)) return
    const topic = Targets.targetOf(options, selection, letter)?.topic
    if (topic !== undefined) this.targets.set(topic, (this.targets.get(topic) ?? 0) + 1)
  }
}

const survey = (run: Run, partition: ReplayProgress.PartitionProgress, tally: Tally, looksAtSizes: boolean) =>
  Stream.runForEachWhile(
    run.progress.scan.pages(rangeOf(run, partition)),
    Effect.fnUntraced(function* (page) {
      if (page.unreadable !== undefined) {
        if (run.selection.concerns?.(page.unreadable) === false) return false
        tally.unreadable += TopicScan.unreadableOffsets(page, partition.position)
        return true
      }
      const letters = page.records.map(DeadLetterRecord.read)
      const isTaken = (letter: DeadLetterRecord.DeadLetterRecord) => Verdicts.of(run, partition, letter) === "take"
      if (looksAtSizes) yield* Sizes.noteTooLarge(run, letters.filter(isTaken))
      for (const letter of letters) {
        const verdict = Verdicts.of(run, partition, letter)
        if (verdict === "stop") return false
        tally.add(letter, verdict)
      }
      return true
    })
  )
