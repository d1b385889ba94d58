/**
 * kafkajs's log at Effect's debug level. Failures are reported as typed errors, once; kafkajs logs them at ERROR for every retry. Only the message
 * and the namespace are taken over: the other fields carry stacks and configuration.
 */
import { LogLine } from "@eventbus/core"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { logCreator } from "kafkajs"

export const logBridge =
  (context: Context.Context<never>, redact: (text: string) => string): logCreator =>
  () =>
  ({ namespace, log }) => {
    Effect.runForkWith(context)(
      LogLine.debug(redact(String(log.message))).pipe(Effect.annotateLogs({ client: "kafkajs", component: namespace }))
    )
  }
