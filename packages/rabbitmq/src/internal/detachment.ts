/**
 * Finds out that a consumer has lost its queue. RabbitMQ says so by a cancellation, but not always: where a quorum queue is deleted and declared again at once, the deliveries end
 * without a word.
 */
import type { ChannelModel } from "amqplib"
import * as Effect from "effect/Effect"
import type { RabbitMqError } from "../RabbitMqError.ts"
import * as Failures from "./failures.ts"
import type { Reading, Session } from "./session.ts"
import { onChannel } from "./topology.ts"

const intervalMillis = 5_000

/** A message may be in the queue at the moment of the question, and on its way here. */
const onItsWayMillis = 1_000

/** Fails when a queue is gone, has no consumer, or keeps messages although this session has nothing to do. */
export const untilDetached = Effect.fnUntraced(function* (
  model: ChannelModel,
  session: Session,
  plans: ReadonlyArray<Reading<unknown>>
): Effect.fn.Return<never, RabbitMqError> {
  const { counts } = session
  while (true) {
    const seen = counts.delivered
    yield* Effect.sleep(intervalMillis)
    const queues = yield* Effect.tryPromise({
      try: () => onChannel(model, (channel) => Promise.all(plans.map(({ queue }) => channel.checkQueue(queue)))),
      catch: Failures.ofChannel
    })
    const isIdle = () => counts.delivered === seen && counts.settled === seen
    const lost = queues.find(({ consumerCount, messageCount }) => consumerCount === 0 || (isIdle() && messageCount > 0))
    if (lost === undefined) continue
    if (lost.consumerCount > 0) yield* Effect.sleep(onItsWayMillis)
    if (lost.consumerCount === 0 || isIdle()) {
      return yield* Effect.fail(
        Failures.failure("Refused", `queue '${lost.queue}' delivers nothing to its consumer any more.`)
      )
    }
  }
})
