/** A command about a binding to all processes: a hold for `pause`, its release for `resume`, else a command of the fleet. */
import type { Fleet, FleetView, Snapshot } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type { FleetCommand } from "../../AdminFleet.ts"
import type * as FleetAnswers from "../../FleetAnswers.ts"
import { given, isDate, isoOf, keyOf } from "../answersOf.ts"
import * as AnswersOf from "./fleetAnswersOf.ts"

/** Longest time that a command waits for answers, unless its caller says another one. */
const defaultWait = "5 seconds"

/** Answers once every live process has, or after `wait`. */
export const run = Effect.fnUntraced(function* (
  fleet: Fleet.Fleet["Service"],
  verb: FleetView.Verb,
  { name: binding, cluster, groupId }: Pick<Snapshot.BindingSnapshot, "name" | "cluster" | "groupId">,
  { reason, by, tier, until, wait = defaultWait }: FleetCommand
) {
  const target = { binding, cluster, groupId, ...given("tier", tier) }
  const why = { reason, by }
  const head = { verb, ...AnswersOf.targetOf({ ...target, tier }), ...why }
  const applied = Effect.map(fleet.applied(target, wait), AnswersOf.answersOf)
  if (verb === "pause") {
    yield* fleet.hold({ ...target, ...why, ...given("until", until) })
    const ends = given("until", isDate(until) ? isoOf(until) : undefined)
    return { ...head, ...ends, ...(yield* applied) } satisfies FleetAnswers.Commanded
  }
  if (verb === "resume") {
    const wasHeld = yield* fleet.release({ ...target, ...why })
    return { ...head, wasHeld, ...(yield* applied) } satisfies FleetAnswers.Commanded
  }
  // The group alone tells bindings of one name apart, and the key those of one group.
  const named = { binding: keyOf({ name: binding, cluster }), target: { group: groupId } }
  const report = yield* fleet.command({ verb, ...named, ...why, ...given("tier", tier), wait })
  return { ...head, id: report.id, ...AnswersOf.answersOf(report) } satisfies FleetAnswers.Commanded
})
