/**
 * The commands of operators about plans and runs of one binding. All that they know is in the journal, so that every process can give them.
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Admin } from "../../Broker.ts"
import { type BrokerError, RecordTooLarge } from "../../BrokerError.ts"
import type { ProducerRecord } from "../../ConsumerRecord.ts"
import { InvalidArgument } from "../../Replay.ts"
import { PlanApplied, type PlanRefused, type PlanRequest, UnknownPlan } from "../../ReplayPlan.ts"
import { RunAtWork, type RunCommand, RunOver, type Runs, UnknownRun, type WorkOptions } from "../../ReplayRun.ts"
import * as LogLine from "../base/logLine.ts"
import { pluralize } from "../base/pluralize.ts"
import * as Arguments from "../replay/arguments.ts"
import * as Attempts from "../replay/replayAttempts.ts"
import type { Lease } from "../replay/replayLease.ts"
import type { RunHalted, RunState } from "../replay/replayRun.ts"
import * as PlanChecks from "./planChecks.ts"
import * as PlanEntries from "./planEntry.ts"
import * as PlanSelection from "./planSelection.ts"
import * as Receipts from "./receipts.ts"
import * as Requests from "./requests.ts"
import * as Entries from "./runEntries.ts"
import * as RunFate from "./runFate.ts"
import * as RunJournal from "./runJournal.ts"
import type { Options } from "./runOptions.ts"
import * as RunProgress from "./runProgress.ts"
import * as Survey from "./survey.ts"
import * as Workers from "./workers.ts"

/** Plans that nobody has applied for so long are forgotten. */
const forgottenMillis = 86_400_000

/** The journal as it is when the command begins. */
interface Session {
  readonly admin: Admin
  readonly journal: RunJournal.RunJournal
}

const open = Effect.fnUntraced(function* (options: Options): Effect.fn.Return<Session, BrokerError, Scope.Scope> {
  const admin = yield* options.broker.admin
  const journal = yield* RunJournal.open(options, admin)
  yield* journal.load
  return { admin, journal }
})

const applied = Effect.fnUntraced(function* (
  { deadLetterTopic }: Options,
  { journal }: Session,
  id: string
): Effect.fn.Return<Receipts.Applied, UnknownRun> {
  const told = journal.told(id)
  return Receipts.isApplied(told) ? told : yield* new UnknownRun({ id, topic: deadLetterTopic })
})

/** A run that is not over. */
const alive = Effect.fnUntraced(function* (
  options: Options,
  session: Session,
  id: string
): Effect.fn.Return<Receipts.Applied, UnknownRun | RunOver> {
  const told = yield* applied(options, session, id)
  const { state } = Receipts.stateOf(told)
  return Receipts.isOver(state) ? yield* new RunOver({ id, state }) : told
})

const receiptOf = Effect.fnUntraced(function* (options: Options, session: Session, id: string) {
  const told = yield* applied(options, session, id)
  return yield* Receipts.read(options, session.admin, session.journal, told)
})

/** The commands that a run obeys, whichever process works on it. */
const ordersOf = (options: Options): Pick<Runs, "pause" | "cancel" | "setRate"> => {
  /** `isSo`: of a run whose state needs no order. */
  const order = Effect.fnUntraced(function* (
    id: string,
    record: (journalTopic: string) => ProducerRecord,
    isSo: (told: Receipts.Applied) => boolean = () => false
  ) {
    const session = yield* open(options)
    if (isSo(yield* alive(options, session, id))) return
    yield* RunJournal.write(options, session.admin, [record(session.journal.topic)])
  }, Effect.scoped)
  const { groupId, hostname: by } = options
  const halt =
    (verb: Entries.HaltEntry["verb"], isSo?: (told: Receipts.Applied) => boolean): RunCommand =>
    (id, reason) =>
      Requests.id(verb, id).pipe(
        Effect.andThen(Arguments.reason(verb, reason)),
        Effect.andThen(
          order(id, (topic) => Entries.record("halt", topic, id, groupId, { v: 1, verb, reason, by }), isSo)
        )
      )
  return {
    pause: halt("pause", (told) => Receipts.stateOf(told).state !== "running"),
    cancel: halt("cancel"),
    setRate: (id, rate) =>
      Requests.id("setRate", id).pipe(
        Effect.andThen(Requests.rate("setRate", rate)),
        Effect.andThen(order(id, (topic) => Entries.record("rate", topic, id, groupId, { v: 1, rate, by })))
      )
  }
}

export const make = (options: Options): Omit<Runs, "ofTopic"> => {
  const { deadLetterTopic: topic } = options
  return {
    plan: Effect.fnUntraced(function* (given: PlanRequest) {
      const request = yield* Requests.plan(options, given)
      const id = globalThis.crypto.randomUUID()
      return yield* plan(options, id, request).pipe(annotated(id))
    }, Effect.scoped),
    getPlan: Effect.fnUntraced(function* (id: string) {
      yield* Requests.id("getPlan", id)
      const { journal } = yield* open(options)
      const entry = journal.told(id)?.plan?.entry
      return entry === undefined ? yield* new UnknownPlan({ id, topic }) : PlanEntries.read(id, entry)
    }, Effect.scoped),
    apply: Effect.fnUntraced(function* (id: string, work?: WorkOptions) {
      yield* Requests.id("apply", id)
      return yield* Effect.gen(function* () {
        const session = yield* open(options)
        yield* apply(options, session, id, noted(work))
        return yield* Effect.catchTag(receiptOf(options, session, id), "UnknownRun", Effect.die)
      }).pipe(annotated(id))
    }, Effect.scoped),
    resume: Effect.fnUntraced(function* (id: string, given?: WorkOptions) {
      yield* Requests.id("resume", id)
      return yield* resume(options, id, given).pipe(annotated(id))
    }, Effect.scoped),
    ...ordersOf(options),
    receipt: Effect.fnUntraced(function* (id: string) {
      yield* Requests.id("receipt", id)
      return yield* receiptOf(options, yield* open(options), id)
    }, Effect.scoped),
    list: Effect.gen(function* () {
      const { journal } = yield* open(options)
      const abandonedSince = yield* Workers.read(options, journal)
      const applied = journal.all().filter(Receipts.isApplied)
      const summaries = applied.map((told) => Receipts.summaryOf(told, abandonedSince))
      return summaries.sort((one, other) => other.startedAtMillis - one.startedAtMillis)
    }).pipe(Effect.scoped)
  }
}

/** Lines of the log say for which plan, or run, they are written. */
const annotated = (id: string) => Effect.annotateLogs({ runId: id })

/** Makes a plan and writes it, with the ends of those that are forgotten. */
const plan = Effect.fnUntraced(function* (options: Options, id: string, request: Requests.Request) {
  const { admin, journal } = yield* open(options)
  const survey = yield* Survey.make(options, admin, request)
  const nowMillis = yield* Clock.currentTimeMillis
  const entry = PlanEntries.make(options, request, survey, nowMillis)
  const forgotten = journal
    .all()
    .filter(
      ({ plan, run }) => run === undefined && plan !== undefined && nowMillis - plan.entry.createdAt > forgottenMillis
    )
  const record = (id: string, of: Entries.PlanEntry | null) =>
    Entries.record("plan", journal.topic, id, options.groupId, of)
  const records = [record(id, entry), ...forgotten.map((told) => record(told.id, null))]
  yield* Effect.catchIf(
    RunJournal.write(options, admin, records),
    (error) => error instanceof RecordTooLarge,
    ({ bytes }) => tooLarge(bytes)
  )
  return PlanEntries.read(id, entry)
})

/** A plan names its letters in one record of the journal. */
const tooLarge = (bytes: number | undefined) =>
  Effect.fail(
    new InvalidArgument({
      command: "plan",
      argument: "select",
      given: bytes === undefined ? "too large for the journal" : `${bytes} bytes`,
      expected: "criteria that fit into a record of the journal: a window, keys or fingerprints instead of records"
    })
  )

/** Takes the lease of the replays of topic and group for some work. */
const leased = <E>(
  options: Options,
  use: (lease: Lease, state: RunState) => Effect.Effect<void, E | Attempts.RunError, Scope.Scope>
) => {
  const state = Attempts.newState()
  return Attempts.withLease(options, state, (lease) => use(lease, state))
}

/** Makes the run of a plan, and works on it. Of two processes that apply a plan, the one with the lease does. */
const apply = (
  options: Options,
  { admin, journal }: Session,
  id: string,
  hasBegun: Effect.Effect<void>
): Effect.Effect<void, Attempts.RunError | PlanRefused, Scope.Scope> =>
  Effect.gen(function* () {
    yield* PlanChecks.applicable(options, journal, id)
    yield* leased(options, (lease, state) =>
      Effect.gen(function* () {
        yield* journal.load
        const told = yield* PlanChecks.applicable(options, journal, id)
        yield* PlanChecks.refuseStale(options, admin, id, told.plan.entry)
        yield* work(options, { admin, journal }, told, { lease, state, hasBegun })
      })
    ).pipe(
      Effect.catchTag("ReplayRunning", (running) =>
        Effect.gen(function* () {
          yield* journal.load
          const run = journal.told(id)?.run?.entry
          if (run === undefined) return yield* running
          return yield* new PlanApplied({ id, host: run.host, pid: run.pid })
        })
      )
    )
  })

/** A process that works on a run, and was not told to end its work, does not give its lease back soon. */
const refuseAtWork = Effect.fnUntraced(function* (options: Options, { journal }: Session, told: Receipts.Applied) {
  if (Receipts.stateOf(told).state !== "running") return
  const abandonedSince = yield* Workers.read(options, journal)
  const { host, pid } = told.run.entry
  if (abandonedSince(told) === undefined) return yield* new RunAtWork({ id: told.id, host, pid })
})

/** Goes on with a run that is not over. */
const resume = Effect.fnUntraced(function* (options: Options, id: string, given?: WorkOptions) {
  const session = yield* open(options)
  yield* refuseAtWork(options, session, yield* alive(options, session, id))
  yield* leased(options, (lease, state) =>
    Effect.gen(function* () {
      yield* session.journal.load
      const told = yield* alive(options, session, id)
      yield* PlanChecks.refuseChanged(options, session.admin, id, told.plan.entry)
      yield* work(options, session, told, { lease, state, hasBegun: noted(given) })
    })
  )
  return yield* receiptOf(options, session, id)
})

/** One line of the log says how the work ended. */
const tell = ({ deadLetterTopic }: Options, id: string, { replayed }: RunState, halted: RunHalted | undefined) => {
  const log = halted?.state === "stopped" ? LogLine.warning : LogLine.info
  const why = halted === undefined ? "" : `: ${halted.reason}`
  return log(
    `Run ${id} over '${deadLetterTopic}' is ${halted?.state ?? "done"}, ${pluralize(replayed, "letter")} later${why}`
  )
}

/** Tells whoever waits for the beginning. */
const noted = ({ begun }: WorkOptions = {}): Effect.Effect<void> =>
  begun === undefined ? Effect.void : Effect.asVoid(Deferred.succeed(begun, undefined))

interface Working {
  readonly lease: Lease
  readonly state: RunState
  readonly hasBegun: Effect.Effect<void>
}

/** Works on a run until it is done, or halted. */
const work = Effect.fnUntraced(function* (
  options: Options,
  { admin, journal }: Session,
  told: PlanChecks.Planned,
  { lease, state: replay, hasBegun }: Working
) {
  const plan = told.plan.entry
  const fate = yield* RunFate.open(options, admin, plan, told)
  const before = yield* fate.look
  const nowMillis = yield* Clock.currentTimeMillis
  const planned = RunProgress.make({ options, plan, told, journal, fate, before, replay, nowMillis, hasBegun })
  const request = PlanEntries.read(told.id, plan)
  const selection = yield* PlanSelection.selectionOf(options, admin, request, Survey.toMap(request.ends))
  const publish = Effect.as(Attempts.publish(options, { ...selection, planned }, replay, lease), undefined)
  const halted = yield* Effect.catchIf(publish, Attempts.isHalted, (ended) => Effect.succeed(ended))
  yield* tell(options, told.id, replay, halted)
  yield* journal.load
})
