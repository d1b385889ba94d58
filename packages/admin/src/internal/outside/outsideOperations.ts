/** The operations on bindings that other processes run: what is seen of them, and the refusal of what only their processes can do. */
import type { Outside } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { NotRunHere } from "../../AdminError.ts"
import type * as Answers from "../../Answers.ts"
import * as AnswersOf from "../answersOf.ts"
import * as HeldAnswers from "../held/heldAnswers.ts"
import * as Closing from "../process/closing.ts"
import * as OutsideAnswers from "./outsideAnswers.ts"

export const make = Effect.fnUntraced(function* (outside: Outside.Outside) {
  const { health } = yield* Closing.make(outside.health)

  const refused = (operation: string) => (name: string) =>
    Effect.flatMap(outside.snapshot(name), (snapshot) =>
      Effect.fail(new NotRunHere({ operation, binding: AnswersOf.keyOf(snapshot) }))
    )
  const refusedRegistration = () => Effect.fail(new NotRunHere({ operation: "register" }))
  const decision = refused("decide about a record of")

  const list = Effect.map(outside.list, (all) =>
    all.map(OutsideAnswers.summaryOf).sort((one, other) => (one.key < other.key ? -1 : 1))
  )
  return {
    // Only the processes that run the bindings know the messages of failures.
    ...{ list, listWithMessages: list },
    get: Effect.fnUntraced(function* (name: string) {
      return OutsideAnswers.detailOf(yield* outside.get(name), yield* health)
    }),
    held: (name: string) => Effect.map(outside.snapshot(name), (snapshot) => HeldAnswers.heldOf(snapshot, false)),
    ...{ skip: decision, deadLetter: decision },
    ...{ register: refusedRegistration, registerJson: refusedRegistration, unregister: refused("unregister") },
    ...{ start: refused("start"), stop: refused("stop"), pause: refused("pause"), resume: refused("resume") },
    health: Effect.map(health, (now): Answers.HealthReport => ({ ...AnswersOf.healthOf(now), outside: true }))
  }
})
