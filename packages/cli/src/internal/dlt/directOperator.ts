/** The operations on dead letters, straight on the cluster of the binding. It joins no group. */
import * as AnswersOf from "@eventbus/admin/AnswersOf"
import type { Replay, ReplayRun } from "@eventbus/core"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type { Failed, Operator } from "./operator.ts"

/** Functions of the user may print: the result of a command alone goes to standard output. */
const aside = Effect.fnUntraced(function* <A, E, R>(run: Effect.Effect<A, E, R>) {
  const console = yield* Console.Console
  const toStderr = { ...console, log: console.error, info: console.error, debug: console.error }
  return yield* Effect.provideService(run, Console.Console, toStderr)
})

/** The user of the command may read the cluster, so nothing is hidden. */
const payload = true

export const make = (letters: Omit<Replay.DeadLetters, "ofTopic">, runs: Omit<ReplayRun.Runs, "ofTopic">): Operator => {
  const receipt: Operator["receipt"] = (id) =>
    Effect.map(runs.receipt(id), (found) => AnswersOf.receiptOf(found, payload))
  return {
    groups: (states) =>
      Effect.map(letters.groups(states === undefined ? {} : { states }), (found) => AnswersOf.groupsOf(found, payload)),
    page: (query) =>
      Effect.map(letters.letters({ ...query, searchesPayload: true }), (found) => AnswersOf.pageOf(found, payload)),
    letter: (position) =>
      Effect.map(letters.letter(position), (found) =>
        found === undefined ? undefined : AnswersOf.letterOf(found, payload)
      ),
    rehearse: (selection, options) =>
      Effect.map(aside(letters.rehearse(selection, options)), (report) => AnswersOf.reportOf(report, payload)),
    transformed: (positions, transform) =>
      Effect.map(aside(letters.transformed(positions, transform)), (found) =>
        found.map((each) => AnswersOf.transformedOf(each, transform, payload))
      ),
    purge: (beforeMillis) => Effect.map(letters.purge(beforeMillis), (purged) => ({ purged })),
    plan: (request) => Effect.map(aside(runs.plan(request)), (plan) => AnswersOf.planOf(plan, payload)),
    getPlan: (id) => Effect.map(runs.getPlan(id), (plan) => AnswersOf.planOf(plan, payload)),
    work: (verb, id, begun) => {
      const options = { begun }
      const working: Effect.Effect<ReplayRun.Receipt, Failed> =
        verb === "apply" ? runs.apply(id, options) : runs.resume(id, options)
      return Effect.map(aside(working), (found) => AnswersOf.receiptOf(found, payload))
    },
    runs: Effect.map(runs.list, (found) => AnswersOf.runsOf(found, payload)),
    receipt,
    halt: (verb, id, reason) => Effect.andThen(runs[verb](id, reason), receipt(id)),
    setRate: (id, rate) => Effect.andThen(runs.setRate(id, rate), receipt(id))
  }
}
