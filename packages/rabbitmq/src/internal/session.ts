/** One channel of a consumer: it delivers messages until it is closed, cancelled or lost. */
import type { Topic } from "@eventbus/messaging/Topic"
import type { Channel, ChannelModel, ConsumeMessage } from "amqplib"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { RabbitMqError } from "../RabbitMqError.ts"
import { Acknowledgements } from "./acknowledgements.ts"
import * as Failures from "./failures.ts"
import type { GroupPlan } from "./topology.ts"

/** One topic of a consumer. */
export interface Reading<T> extends GroupPlan {
  readonly of: Topic<T>
}

/** A message, and the channel that it is acknowledged on. */
export interface Delivery {
  readonly plan: Reading<unknown>
  readonly session: Session
  readonly message: ConsumeMessage
}

/** A channel that delivers. */
export class Session {
  /** False once the channel is gone. Its messages are delivered again, to anybody, and cannot be acknowledged any more. */
  isAlive = true
  /** Why the session ended. */
  readonly ended = Deferred.makeUnsafe<never, RabbitMqError>()
  readonly #channel: Channel
  readonly #acknowledgements: Acknowledgements
  readonly #tags: Array<string> = []
  /** Messages that were delivered, and that were settled. */
  readonly counts = { delivered: 0, settled: 0 }

  constructor(channel: Channel) {
    this.#channel = channel
    this.#acknowledgements = new Acknowledgements(channel)
    let refusal: unknown
    channel.on("error", (error) => {
      refusal = error
    })
    channel.on("close", () => this.#end(Failures.ofChannel(refusal ?? new Error("channel closed"))))
  }

  /** Starts the deliveries of a queue. */
  async consume(plan: Reading<unknown>, prefetch: number, onDelivery: (delivery: Delivery) => void): Promise<void> {
    await this.#channel.prefetch(prefetch)
    const { consumerTag } = await this.#channel.consume(plan.queue, (message) => {
      if (message === null) {
        const why = `queue '${plan.queue}' was deleted, with the messages in it. It is declared again.`
        this.#end(Failures.failure("Refused", why))
        return
      }
      this.counts.delivered++
      onDelivery({ plan, session: this, message })
    })
    this.#tags.push(consumerTag)
  }

  /** Acknowledges a message. */
  settle({ fields }: ConsumeMessage): void {
    this.counts.settled++
    if (this.isAlive) this.#acknowledgements.settle(fields.deliveryTag)
  }

  /** Gives a message back: to RabbitMQ's own dead-lettering as it is, or to its queue again. */
  reject(message: ConsumeMessage, to: "dead letters" | "queue"): void {
    if (!this.isAlive) return
    try {
      this.counts.settled++
      this.#channel.nack(message, false, to === "queue")
      this.#acknowledgements.rejected(message.fields.deliveryTag)
    } catch {
      // The channel is closed: the message comes again.
    }
  }

  /** Ends the deliveries. Messages that were delivered can still be acknowledged. */
  readonly stopDeliveries: Effect.Effect<void> = Effect.promise(() =>
    Promise.all(this.#tags.map((tag) => this.#channel.cancel(tag))).then(nothing, nothing)
  )

  /** Sends the acknowledgements, and closes the channel once RabbitMQ has taken them. Messages that are not acknowledged come again. */
  readonly close: Effect.Effect<void> = Effect.promise(async () => {
    this.#acknowledgements.flush()
    await this.#channel.close().catch(nothing)
  })

  #end(error: RabbitMqError): void {
    this.isAlive = false
    Deferred.doneUnsafe(this.ended, Effect.fail(error))
  }
}

const nothing = (): void => {}

/** Opens a channel for a consumer. */
export const openSession = async (model: ChannelModel): Promise<Session> => new Session(await model.createChannel())
