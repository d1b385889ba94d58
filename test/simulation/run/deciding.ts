/**
 * An operator's decisions about the keys that are held.
 */
import type { EventBusConnector } from "@eventbus/core"
import { Effect } from "effect"
import type { Action } from "../scenario/Scenario.ts"

type Decision = Extract<Action, { readonly _tag: "Decide" }>

/** Decides about every so manieth held key that this process lists. Reports the place of each one before the command, and its answer; undefined when it failed. */
export const decide = (
  connector: EventBusConnector.EventBusConnector["Service"],
  binding: string,
  { verb, every }: Pick<Decision, "verb" | "every">,
  report: (at: string, by: string | undefined) => void
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const parked = yield* connector.parked(binding)
    const held = (yield* parked.list).filter(({ state }) => state === "held")
    for (const { topic, partition, offset } of held.filter((_, index) => index % every === 0)) {
      const decided = yield* Effect.option(parked[verb]({ topic, partition, offset }, "the operator of this run"))
      report(`${topic}/${partition}@${offset}`, decided._tag === "Some" ? decided.value.by : undefined)
    }
  }).pipe(Effect.ignore)
