/** The producer of one call of a transactional handler. It belongs to that call, and never outlives it. */
import type { Broker } from "@eventbus/core"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Message, Topic } from "../Topic.ts"
import type { TransactionProducer } from "../TransactionProducer.ts"
import * as Publishing from "./publishing.ts"

/** Runs a handler with a producer of its own. Fulfils when the handler has ended and all that it published is acknowledged. */
export const use = async (
  transaction: Broker.Producer,
  context: Context.Context<never>,
  signal: AbortSignal,
  run: (producer: TransactionProducer) => unknown
): Promise<unknown> => {
  const begun: Array<Promise<unknown>> = []
  let isOver = false
  const publish = <K, V>(topic: string | Topic<K, V>, message: Message<K, V>) => {
    if (isOver)
      return Promise.reject(new Error("The handler has ended, and so has its transaction: await each publish."))
    const sending = Publishing.inTransaction(topic, transaction).publish(message)
    const sent = Effect.runPromiseWith(context)(sending, { signal })
    begun.push(sent)
    return sent
  }
  try {
    const answer = await run({ publish })
    await Promise.all(begun)
    return answer
  } finally {
    isOver = true
    // Nothing is being sent any more when the transaction ends, and no rejection is left without somebody who takes it.
    await Promise.allSettled(begun)
  }
}
