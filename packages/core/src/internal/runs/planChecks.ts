/** Whether a plan may be applied now. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Admin } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { PlanApplied, PlanExpired, PlanStale, UnknownPlan } from "../../ReplayPlan.ts"
import * as Anchors from "./anchors.ts"
import * as PlanEntries from "./planEntry.ts"
import * as PlanSelection from "./planSelection.ts"
import type { At, PlanEntry, Told } from "./runEntries.ts"
import type { RunJournal } from "./runJournal.ts"
import type { Options } from "./runOptions.ts"
import * as Survey from "./survey.ts"

/** The plan, when it is there, was not applied, and has not expired. */
export const applicable = Effect.fnUntraced(function* (
  { deadLetterTopic }: Pick<Options, "deadLetterTopic">,
  journal: RunJournal,
  id: string
): Effect.fn.Return<Planned, UnknownPlan | PlanApplied | PlanExpired> {
  const told = journal.told(id)
  if (told?.run !== undefined) {
    const { host, pid } = told.run.entry
    return yield* new PlanApplied({ id, host, pid })
  }
  if (!isPlanned(told)) return yield* new UnknownPlan({ id, topic: deadLetterTopic })
  const ageMillis = yield* ageOf(journal, told.plan)
  if (ageMillis > PlanEntries.lifetimeMillis) return yield* new PlanExpired({ id, ageMillis })
  return told
})

/** The journal has the plan. It tells more while it is read on. */
export type Planned = Told & { readonly plan: At<PlanEntry> }

const isPlanned = (told: Told | undefined): told is Planned => told?.plan !== undefined

/** The cluster's clock tells, where the journal has its times: clocks of processes may differ. */
const ageOf = ({ newestMillis }: RunJournal, { appendedMillis, entry }: At<PlanEntry>) =>
  Effect.map(Clock.currentTimeMillis, (nowMillis) =>
    appendedMillis === undefined ? nowMillis - entry.createdAt : (newestMillis() ?? appendedMillis) - appendedMillis
  )

/** Refuses a plan that no longer says what would happen. Looks at all its letters again. */
export const refuseStale = Effect.fnUntraced(function* (
  options: Options,
  admin: Admin,
  id: string,
  entry: PlanEntry
): Effect.fn.Return<void, PlanStale | BrokerError, Scope.Scope> {
  yield* refuseChanged(options, admin, id, entry)
  const plan = PlanEntries.read(id, entry)
  const now = yield* Survey.make(options, admin, plan, plan.ends)
  if (now.digest !== entry.digest)
    return yield* new PlanStale({ id, changes: [changedLetters(entry.count, now.count)] })
})

/** Refuses a plan whose topic or binding is another one: its run cannot go on as it was meant. */
export const refuseChanged = Effect.fnUntraced(function* (
  options: Options,
  admin: Admin,
  id: string,
  entry: PlanEntry
): Effect.fn.Return<void, PlanStale | BrokerError, Scope.Scope> {
  const { action, tier, transform } = PlanEntries.read(id, entry)
  const remade = yield* isRemade(options, admin, entry)
  const changes = [
    ...(remade ? [`topic '${options.deadLetterTopic}' was made again`] : []),
    ...changedTopics(PlanSelection.mayWriteTo(options, { action, tier }), entry.mayWriteTo),
    ...(transform === undefined || options.transforms.has(transform)
      ? []
      : [`transform '${transform}', a function in the code of the binding, is missing in this process`])
  ]
  if (changes.length > 0) return yield* new PlanStale({ id, changes })
})

/** Whether the topic whose letters are meant is gone, and another one has its name. Where the cluster gives no ids, the letters tell. */
export const isRemade = Effect.fnUntraced(function* (
  options: Options,
  admin: Admin,
  { topicId, anchors = [] }: PlanEntry
) {
  const now = topicId === undefined ? undefined : yield* Survey.topicIdOf(options, admin)
  return now === undefined ? yield* Anchors.areOthers(options, admin, anchors) : now !== topicId
})

const changedTopics = (now: ReadonlyArray<string>, then: ReadonlyArray<string>): ReadonlyArray<string> =>
  now.join() === then.join()
    ? []
    : [`the binding may write to ${listed(now)} instead of ${listed(then)} (its topic, tiers and origins)`]

const listed = (topics: ReadonlyArray<string>): string => topics.map((topic) => `'${topic}'`).join(", ") || "no topic"

const changedLetters = (then: number, now: number): string =>
  now === then
    ? `the selection takes other letters: ${now} as before, but not the same`
    : `the selection takes ${now} letters instead of ${then}: letters of it were dealt with by somebody else, are gone from the topic, or wait again`
