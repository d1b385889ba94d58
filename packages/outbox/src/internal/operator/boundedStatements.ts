/** The statements of an operator within a time limit: a database that is silent is a failure, and no wait without an end. */
import { UserFunction } from "@eventbus/core"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { OutboxStoreError } from "../../OutboxError.ts"
import type { DeadEventStatements } from "../store/contract.ts"

export const boundedStatements = (statements: DeadEventStatements, timeout: Duration.Input): DeadEventStatements => {
  const within = <A>(operation: string, statement: Effect.Effect<A, OutboxStoreError>) =>
    UserFunction.runBounded(`the statement of '${operation}'`, statement, { timeout }).pipe(
      Effect.catchTag("FunctionTimedOut", (cause) =>
        Effect.fail(new OutboxStoreError({ operation, retryable: true, cause }))
      )
    )
  return {
    page: (...given) => within("read dead events", statements.page(...given)),
    event: (eventId) => within("read dead event", statements.event(eventId)),
    states: (eventIds) => within("read states of events", statements.states(eventIds)),
    replay: (death) => within("replay dead event", statements.replay(death)),
    discard: (death) => within("discard dead event", statements.discard(death))
  }
}
