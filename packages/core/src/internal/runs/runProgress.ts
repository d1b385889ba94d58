/**
 * The work of one process on a run: what it adds to each transaction, and when the next one may begin. Canary first, then the rate; it ends when an operator says so, when
 * nobody handles the canary, when too many copies come back, or when the circuit breaker of the binding opens.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { BrokerError } from "../../BrokerError.ts"
import * as Refusals from "../replay/replayRefusals.ts"
import { batchRecords, type Copied, type Planned, RunHalted, type RunState } from "../replay/replayRun.ts"
import * as Hashes from "./hashes.ts"
import * as Positions from "./positions.ts"
import * as RequestIssues from "./requestIssues.ts"
import * as Entries from "./runEntries.ts"
import * as RunFate from "./runFate.ts"
import type { RunJournal } from "./runJournal.ts"
import type { Options } from "./runOptions.ts"
import * as Transforms from "./transforms.ts"

export interface Work {
  readonly options: Options
  readonly plan: Entries.PlanEntry
  readonly told: Entries.Told
  readonly journal: RunJournal
  readonly fate: RunFate.FateReader
  /** The fate of the copies before this process began. */
  readonly before: RunFate.Fate
  /** The state of the replay that publishes. */
  readonly replay: RunState
  readonly nowMillis: number
  /** Called once the journal has the beginning of the work. */
  readonly hasBegun: Effect.Effect<void>
}

/** From so many decided copies on, the share of returns says something. */
const fewestDecided = 20
/** Looking at the fate of the copies takes several requests. */
const lookMillis = 2_000
const canaryPollMillis = 1_000
/** How often a run asks whether an operator ends it, in the middle of what takes long. */
const watchMillis = 1_000

export const make = (work: Work): Planned => {
  const { options, plan, told, journal, replay } = work
  const progress = new Progress(work)
  const makesCopies = RequestIssues.makesCopies(plan.action)
  const transform = plan.transform === undefined ? undefined : options.transforms.get(plan.transform)

  /** Obeys what operators have written since. */
  const obey = Effect.gen(function* () {
    yield* journal.poll
    progress.asked(yield* Clock.currentTimeMillis)
    const halt = progress.nextHalt()
    if (halt === undefined) return
    return yield* Effect.fail(new RunHalted(halt.verb === "pause" ? "paused" : "cancelled", halt.reason))
  })
  const glance = Effect.flatMap(Clock.currentTimeMillis, (nowMillis) =>
    progress.isAskDue(nowMillis) ? obey : Effect.void
  )
  const watch = Effect.forever(Effect.andThen(Effect.sleep(watchMillis), obey))
  const watched: Planned["watched"] = (work) => Effect.tap(Effect.raceFirst(work, watch), () => obey)
  const ready = Effect.gen(function* () {
    yield* watched(progress.pace)
    if (progress.awaitsCanary()) {
      yield* awaitCanary(work, progress, obey)
      yield* obey
    }
    if (makesCopies) yield* judge(work, progress)
  })
  return {
    runId: told.id,
    ...(transform === undefined
      ? {}
      : { prepare: Transforms.prepare({ name: plan.transform!, transform, serdes: options.serdes }) }),
    most: () => (makesCopies ? progress.most() : batchRecords),
    ...{ ready, glance, watched },
    entries: Effect.fnUntraced(function* (copied, taken) {
      const copies = yield* Effect.forEach(copied, (copy) => copyEntry(copy, plan.transform !== undefined))
      const at = { id: told.id, number: progress.begin(taken) }
      const batch = Entries.batchRecord(journal.topic, at, options.groupId, { v: 1, taken, copies })
      return [batch, progress.entry("running", replay)]
    }),
    committed: Effect.map(Clock.currentTimeMillis, (nowMillis) => progress.committed(nowMillis)),
    begun: Effect.sync(() => [progress.entry("running", replay)]),
    hasBegun: work.hasBegun,
    over: (halted) => Effect.sync(() => [progress.entry(halted?.state ?? "done", replay, halted?.reason)])
  }
}

const copyEntry = Effect.fnUntraced(function* ({ record, copy, stored }: Copied, isMade: boolean) {
  const entry = { letter: Positions.textOf(record), copy: Positions.copyTextOf(stored) }
  if (!isMade) return entry
  return { ...entry, was: yield* Hashes.ofBytes(record.value), is: yield* Hashes.ofBytes(copy.value) }
})

/**
 * Waits until the fate of all copies is known, at most as long as the plan says. An operator may end it. A canary without any outcome protects nothing: it ends the run, and
 * whoever resumes that has decided to go on.
 */
const awaitCanary = Effect.fnUntraced(function* (
  { plan, fate }: Work,
  progress: Progress,
  obey: Effect.Effect<void, RunHalted | BrokerError>
): Effect.fn.Return<void, RunHalted | BrokerError> {
  const until = (yield* Clock.currentTimeMillis) + plan.canaryWait
  let found: RunFate.Fate
  while (true) {
    yield* obey
    found = yield* fate.look
    const leftMillis = until - (yield* Clock.currentTimeMillis)
    if (RunFate.decided(found) >= progress.taken || leftMillis <= 0) break
    yield* Effect.sleep(Math.min(canaryPollMillis, leftMillis))
  }
  progress.endCanary()
  if (RunFate.decided(found) === 0 && found.waiting > 0 && plan.stopAbove < 100)
    return yield* Effect.fail(new RunHalted("stopped", undecided(found, plan.canaryWait)))
})

const undecided = ({ waiting, hidden }: RunFate.Fate, waitedMillis: number): string => {
  const why =
    hidden > 0
      ? "an open transaction hides the end of the dead letter topic or of a retry topic. Look at the receipt, then resume the run"
      : "is the binding paused or stopped, or do they wait for a retry? Resume the binding, then the run"
  return `none of the ${waiting} copies of the canary passed or came back within ${Duration.format(Duration.millis(waitedMillis))}: ${why} (eventbus dlt resume)`
}

/** Ends the run when too many of the copies that are decided have come back. */
const judge = Effect.fnUntraced(function* (
  { options, plan, fate, before }: Work,
  progress: Progress
): Effect.fn.Return<void, RunHalted | BrokerError> {
  if (options.isBreakerOpen())
    return yield* Effect.fail(new RunHalted("stopped", "the circuit breaker of the binding is open in this process"))
  if (progress.taken === 0 || !progress.isLookDue(yield* Clock.currentTimeMillis)) return
  const found = yield* fate.look
  const back = found.cameBack - before.cameBack
  const decided = RunFate.judged(found) - RunFate.judged(before)
  if (decided < (progress.isCanaryJudged() ? 1 : fewestDecided)) return
  if (back * 100 > plan.stopAbove * decided)
    return yield* Effect.fail(
      new RunHalted("stopped", `${back} of ${decided} decided copies came back, more than ${plan.stopAbove} %`)
    )
})

/** How far the run is, as this process knows. */
class Progress {
  /** Letters that are dealt with, by all processes of the run. */
  taken: number
  readonly #work: Work
  /** The number of the next transaction. */
  #number: number
  #pending = 0
  #canaryOver: boolean
  #canaryJudged = false
  #obeyed: bigint
  #paceMillis = 0
  #lookedMillis = Number.NEGATIVE_INFINITY
  #askedMillis = Number.NEGATIVE_INFINITY

  constructor(work: Work) {
    const { told, plan } = work
    this.#work = work
    this.taken = Entries.takenOf(told)
    this.#number = Math.max(-1, ...told.batches.keys()) + 1
    this.#canaryOver = plan.canary === 0 || told.run?.entry.canaryOver === true
    // A pause before this process began was lifted by its beginning.
    this.#obeyed = told.halt?.offset ?? -1n
  }

  get rate(): number {
    return this.#work.told.rate?.entry.rate ?? this.#work.plan.rate
  }

  most(): number {
    const most = Math.min(batchRecords, this.rate)
    const ofCanary = this.#work.plan.canary - this.taken
    return this.#canaryOver || ofCanary <= 0 ? most : Math.min(most, ofCanary)
  }

  /** Waits as long as the last transaction takes at the rate of the run. */
  readonly pace = Effect.suspend(() =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      this.#paceMillis > now ? Effect.sleep(this.#paceMillis - now) : Effect.void
    )
  )

  awaitsCanary(): boolean {
    return !this.#canaryOver && this.taken >= this.#work.plan.canary
  }

  endCanary(): void {
    this.#canaryOver = true
    this.#canaryJudged = true
    this.#lookedMillis = Number.NEGATIVE_INFINITY
  }

  isCanaryJudged(): boolean {
    return this.#canaryJudged
  }

  isLookDue(nowMillis: number): boolean {
    if (nowMillis - this.#lookedMillis < lookMillis) return false
    this.#lookedMillis = nowMillis
    return true
  }

  /** Somebody has asked what operators say. */
  asked(nowMillis: number): void {
    this.#askedMillis = nowMillis
  }

  isAskDue(nowMillis: number): boolean {
    return nowMillis - this.#askedMillis >= watchMillis
  }

  nextHalt(): Entries.HaltEntry | undefined {
    const { halt } = this.#work.told
    if (halt === undefined || halt.offset <= this.#obeyed) return undefined
    this.#obeyed = halt.offset
    return halt.entry
  }

  /** A transaction that may be aborted yet. Answers its number. */
  begin(taken: number): number {
    this.#pending = taken
    return this.#number
  }

  committed(nowMillis: number): void {
    this.#number++
    this.taken += this.#pending
    if (RequestIssues.makesCopies(this.#work.plan.action))
      this.#paceMillis = Math.max(this.#paceMillis, nowMillis) + Math.ceil((this.#pending * 1_000) / this.rate)
  }

  entry(state: Entries.RunEntry["state"], replay: RunState, stateReason?: string) {
    const { told, options, journal, nowMillis } = this.#work
    const entry: Entries.RunEntry = {
      ...{ v: 1, state, canaryOver: this.#canaryOver, startedAt: told.run?.entry.startedAt ?? nowMillis },
      ...{ refused: replay.refused.size, refusals: Object.fromEntries(Refusals.reasonsOf(replay)) },
      ...{ host: options.hostname, pid: globalThis.process?.pid ?? 0 },
      ...(stateReason === undefined ? {} : { stateReason }),
      ...(this.#obeyed < 0n ? {} : { obeyed: String(this.#obeyed) })
    }
    return Entries.record("run", journal.topic, told.id, options.groupId, entry)
  }
}
