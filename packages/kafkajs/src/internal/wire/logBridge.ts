/**
 * kafkajs's log at our debug level. What goes wrong is reported as a typed error, once; kafkajs logs it at ERROR for every retry.
 * Only the message (now and then an Error) and the namespace are taken over: the other fields carry stacks and configuration.
 */
import { type Context, Effect } from "effect"
import type { logCreator } from "kafkajs"

export const logBridge =
  (context: Context.Context<never>, scrub: (text: string) => string): logCreator =>
  () =>
  ({ namespace, log }) => {
    Effect.runForkWith(context)(
      Effect.logDebug(scrub(String(log.message))).pipe(Effect.annotateLogs({ client: "kafkajs", component: namespace }))
    )
  }
