/**
 * Rehearses selected dead letters: today's serdes decode them, the handler gets them in the user's layer, and the rules for errors say where those that fail would go.
 *
 * The handler is the bare one. A rehearsal that went through the idempotency store would complete the keys of its records, and their replay would skip them.
 */
import type * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { UnreadableBatch } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import * as DeadLetterSelection from "../../DeadLetterSelection.ts"
import type { DryRunLayerFailed, Options, Report, Verdict } from "../../Rehearsal.ts"
import type { InvalidArgument } from "../../Replay.ts"
import * as Route from "../../Route.ts"
import * as BatchVerdict from "../failure/batchVerdict.ts"
import type * as Classification from "../failure/classification.ts"
import * as Failures from "../failure/failure.ts"
import { Undecodable } from "../record/decoding.ts"
import * as Preparing from "../record/preparing.ts"
import * as Arguments from "../replay/arguments.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import type * as TopicScan from "../replay/topicScan.ts"
import * as Tiers from "../retry/tiers.ts"
import * as RequestIssues from "../runs/requestIssues.ts"
import * as Transforms from "../runs/transforms.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import { nextDestination } from "../settings/deliveries.ts"
import * as DryRun from "./dryRun.ts"
import { type LettersTarget, ofUnreadable, read, type StatedLetter, wholeOf } from "./lettersTarget.ts"
import { preparationMillis } from "./oneLetter.ts"
import { RehearsalTally } from "./rehearsalTally.ts"
import * as RehearsedRecord from "./rehearsedRecord.ts"

/** A binding whose dead letters are rehearsed. */
export interface RehearsalTarget<R> extends LettersTarget {
  readonly definition: BindingDefinition<R>
  readonly hostname: string
  /** The services that the layer for rehearsals may require. */
  readonly services: Context.Context<R>
}

const defaults = { limit: 100_000, timeoutMillis: 5 * 60_000, listed: 1_000 }
const optionNames = ["limit", "timeoutMillis", "listed", "transform"] as const
const most = Number.MAX_SAFE_INTEGER

export const rehearse = Effect.fnUntraced(function* <R>(
  target: RehearsalTarget<R>,
  asked: DeadLetterSelection.DeadLetterSelection,
  options: Options = {}
): Effect.fn.Return<Report, BrokerError | InvalidArgument | DryRunLayerFailed> {
  const selection = yield* Arguments.selection("rehearse", asked)
  const given = yield* Arguments.options("rehearse", "options", options, optionNames)
  const { limit, timeoutMillis, listed, transform } = { ...defaults, ...given }
  yield* Arguments.within("rehearse", "limit", limit, [1, most])
  yield* Arguments.within("rehearse", "timeoutMillis", timeoutMillis, [1, most])
  yield* Arguments.count("rehearse", listed, "listed")
  const prepare = yield* preparationOf(target.definition, transform)
  const startedMillis = yield* Clock.currentTimeMillis
  const tally = new RehearsalTally(listed)
  const progress: Progress<R> = { dryRun: undefined, complete: true }
  const bounds = { limit, endMillis: startedMillis + timeoutMillis }
  const whole = Effect.scoped(run(target, selection, bounds, { tally, progress, prepare }))
  // A call, or a wait for something, may take longer than the whole rehearsal.
  if (Option.isNone(yield* Effect.timeoutOption(whole, timeoutMillis))) progress.complete = false
  const { dryRun, complete } = progress
  const tookMillis = (yield* Clock.currentTimeMillis) - startedMillis
  return {
    ...{ ...tally.figures, mode: target.definition.dryRun === undefined ? "decode" : "handler", complete },
    ...{ groups: tally.groups(), letters: tally.letters, published: dryRun?.published() ?? 0 },
    ...{ startedMillis, tookMillis }
  }
})

interface Bounds {
  readonly limit: number
  readonly endMillis: number
}

interface Rehearsing<R> {
  readonly tally: RehearsalTally
  readonly progress: Progress<R>
  readonly prepare: Preparation
}

/** The letter that a run would copy, or why the letter stays. */
type Preparation = (letter: DeadLetterRecord) => Effect.Effect<DeadLetterRecord | string>

/** The function of the binding that repairs letters; without a name, they stay as they are. */
const preparationOf = Effect.fnUntraced(function* (
  { transforms, serdes }: BindingDefinition<unknown>,
  name: string | undefined
): Effect.fn.Return<Preparation, InvalidArgument> {
  if (name === undefined) return Effect.succeed
  const transform = transforms.get(name)
  return transform === undefined
    ? yield* Arguments.refuse(
        "rehearse",
        "transform",
        name,
        RequestIssues.transformNames(Array.from(transforms.keys()))
      )
    : Transforms.prepare({ name, transform, serdes })
})

/** A rehearsal may be ended at any moment: what it has found by then counts. */
interface Progress<R> {
  dryRun: DryRun.DryRun<R> | undefined
  /** Whether every selected dead letter has its verdict. */
  complete: boolean
}

const run = Effect.fnUntraced(function* <R>(
  target: RehearsalTarget<R>,
  selection: DeadLetterSelection.DeadLetterSelection,
  { limit, endMillis }: Bounds,
  { tally, progress: found, prepare }: Rehearsing<R>
): Effect.fn.Return<void, BrokerError | DryRunLayerFailed, Scope.Scope> {
  const admin = yield* target.broker.admin
  const { partitions, scan } = yield* ReplayProgress.load(target, admin)
  found.dryRun = yield* DryRun.open(target.definition, target.services)
  const isSelected = DeadLetterSelection.matches(selection)
  const nowMillis = yield* Clock.currentTimeMillis
  const { definition, hostname } = target
  const judge = judgeOf(
    definition,
    { definition, hostname, clusterId: admin.clusterId, nowMillis },
    found.dryRun,
    prepare
  )
  let isEnded = false
  for (const progress of partitions) {
    const range = rangeOf(wholeOf(target, progress), selection)
    yield* Stream.runForEachWhile(scan.pages(range), ({ records, unreadable }) =>
      Effect.gen(function* () {
        if (unreadable !== undefined && mayHold(unreadable, selection)) {
          found.complete = false
          tally.add({ _tag: "Skipped", because: "unreadable" }, ofUnreadable(unreadable))
        }
        for (const record of records) {
          const stated = read(target, progress, record)
          if (!isSelected(stated.letter)) continue
          isEnded = tally.figures.selected >= limit || (yield* Clock.currentTimeMillis) >= endMillis
          if (isEnded) return false
          tally.add(yield* judge(stated), stated)
        }
        return true
      })
    )
    if (isEnded) break
  }
  if (isEnded) found.complete = false
})

/** Whether records of a batch that cannot be read may be selected. Only their positions are known. */
const mayHold = (
  { partition, offset, lastOffset }: UnreadableBatch,
  { records }: DeadLetterSelection.DeadLetterSelection
): boolean =>
  records === undefined ||
  records.some((each) => each.partition === partition && each.offset >= offset && each.offset <= lastOffset)

/** The part of a partition that the positions of a selection lie in. */
const rangeOf = (whole: TopicScan.Range, { records }: DeadLetterSelection.DeadLetterSelection): TopicScan.Range => {
  if (records === undefined) return whole
  let [from, to] = [whole.to, whole.from]
  for (const { partition, offset } of records) {
    if (partition !== whole.partition || offset < whole.from || offset >= whole.to) continue
    if (offset < from) from = offset
    if (offset >= to) to = offset + 1n
  }
  return { ...whole, from, to }
}

/** The verdict about a dead letter. */
const judgeOf = <R>(
  definition: BindingDefinition<R>,
  rehearsed: RehearsedRecord.Rehearsed,
  dryRun: DryRun.DryRun<R> | undefined,
  prepare: Preparation
) => {
  const missingFor = Preparing.make(definition.serdes)
  return Effect.fnUntraced(function* ({ letter: stored, state }: StatedLetter): Effect.fn.Return<Verdict> {
    if (state === "dealt-with" || state === "foreign" || state === "unreadable")
      return { _tag: "Skipped", because: state }
    const letter = yield* prepare(stored)
    if (typeof letter === "string") return { _tag: "Stays", reason: letter }
    const record = RehearsedRecord.of(rehearsed, letter)
    if (record === undefined) return { _tag: "Skipped", because: "refused" }
    for (const each of missingFor?.(record) ?? []) yield* Effect.timeoutOption(each, preparationMillis)
    const call = definition.rehearsed(record, RehearsedRecord.receiverOf(rehearsed, letter), rehearsed.nowMillis)
    if (call instanceof Undecodable) return { _tag: "Undecodable", key: call.key, value: call.value }
    if (dryRun === undefined) return decodes
    const exit = yield* dryRun.call(call)
    if (exit === undefined) return { _tag: "TimedOut", millis: dryRun.callMillis }
    return Exit.isSuccess(exit) ? passes : failing(definition, BatchVerdict.causeOfOne(exit.cause))
  })
}

const passes: Verdict = { _tag: "Passes" }
const decodes: Verdict = { _tag: "Decodes" }

const failing = (definition: BindingDefinition<unknown>, cause: Cause.Cause<unknown>): Verdict => {
  const failure = Failures.fromCause(cause)
  // It is called again, as after any failure that no rule is about.
  if (failure === undefined) {
    const route = routeOf(definition, { inPlace: true, destination: { _tag: "NextTier" } })
    return { _tag: "Fails", exceptionClass: "Interrupted", message: "", route }
  }
  const route = routeOf(definition, definition.classify(cause, 0, failure))
  return { _tag: "Fails", exceptionClass: failure.className, message: failure.message, route }
}

/** The first delivery of a copy, in the main topic. */
const firstDelivery = { tier: 0, attempt: 1 }

/** The route that leads to a decision. A tier that the binding does not have is none: the record goes where those go that have been through all tiers. */
const routeOf = (
  definition: BindingDefinition<unknown>,
  { inPlace, destination }: Pick<Classification.Decision, "inPlace" | "destination">
): Route.Route => {
  switch (destination._tag) {
    case "NextTier":
    case "Tier":
    case "After": {
      const next = nextDestination(definition, firstDelivery, destination)
      if (next === "no-such-tier") return Route.deadLetter(Tiers.noSuchTier(destination, definition.tiers))
      if (next === "exhausted") return definition.onExhausted === "dead-letter" ? Route.deadLetter() : Route.pause
      if (destination._tag === "After") return Route.after(destination.delayMillis)
      if (destination._tag === "Tier")
        return inPlace ? Route.retryThenTier(destination.tier) : Route.tier(destination.tier)
      return inPlace ? Route.retry : Route.nextTier
    }
    case "DeadLetter":
      return Route.deadLetter(destination.reason)
    case "Pause":
      return Route.pause
    case "Skip":
      return Route.skip
  }
}
