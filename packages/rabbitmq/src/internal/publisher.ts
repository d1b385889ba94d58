/**
 * Publishes messages and waits for their confirmations.
 *
 * All messages go through one channel in the order of the calls. When the channel or its connection is lost, those that are not confirmed are published again, in their order and
 * before all others: RabbitMQ may have them already, so a message can arrive twice. Every message is mandatory: RabbitMQ returns one that no queue takes, right before it
 * confirms it.
 */
import type { Acknowledgement } from "@eventbus/messaging/MessageResult"
import { type ChannelModel, type ConfirmChannel, IllegalOperationError, type Options } from "amqplib"
import * as Effect from "effect/Effect"
import type { RabbitMqError } from "../RabbitMqError.ts"
import * as Failures from "./failures.ts"
import { FramesTogether } from "./socket.ts"
import { declareExchange, onChannel } from "./topology.ts"

/** A message as RabbitMQ gets it. */
export interface Outgoing {
  /** The exchange, or "" for a queue by its name. */
  readonly exchange: string
  readonly routingKey: string
  readonly content: Buffer
  readonly options: Options.Publish & { readonly messageId: string }
}

/** RabbitMQ has neither partitions nor offsets. */
const kept: Effect.Effect<Acknowledgement> = Effect.succeed({})

/** A message on its way. */
interface Pending {
  readonly outgoing: Outgoing
  /** The tick in which it was given up at the latest. */
  readonly lastTick: number
  /** How often RabbitMQ closed the channel while this message alone was on its way. */
  refusals: number
  readonly resume: (result: Effect.Effect<Acknowledgement, RabbitMqError>) => void
}

/** A message that was alone on its way so often when RabbitMQ closed the channel is the reason, and would hold up all others for ever. */
const maxRefusals = 3

/** A time limit is kept to a twentieth of it, so that no call asks for the time. */
export const ticksOfLimit = 20

/** Publishes messages. `connected` and `disconnected` are its channel's life, `tick` its time. */
export class Publisher {
  readonly #maxUnconfirmed: number
  readonly #reasonOfSilence: () => RabbitMqError
  #waiting = new Set<Pending>()
  readonly #unconfirmed = new Set<Pending>()
  readonly #declared = new Set<string>()
  /** Messages that were returned and are not confirmed yet: how many, by exchange and id. */
  readonly #returned = new Map<string, number>()
  readonly #onIdle = new Set<() => void>()
  #channel: ConfirmChannel | undefined
  #model: ChannelModel | undefined
  #frames: FramesTogether | undefined
  #declaring = false
  #isFull = false
  /** Messages that were on their way when RabbitMQ closed the channel. One of them is the reason: each is sent alone until it is confirmed. */
  #suspects = new Set<Pending>()
  #closed: RabbitMqError | undefined
  #tick = 0

  /** `reasonOfSilence` says why a message got no confirmation in time. */
  constructor(maxUnconfirmed: number, reasonOfSilence: () => RabbitMqError) {
    this.#maxUnconfirmed = maxUnconfirmed
    this.#reasonOfSilence = reasonOfSilence
  }

  /** Publishes one message. Succeeds when it is confirmed, and fails when it was returned, refused, or not confirmed within the time limit. */
  publish(outgoing: Outgoing): Effect.Effect<Acknowledgement, RabbitMqError> {
    return Effect.callback((resume) => {
      if (this.#closed !== undefined) return resume(Effect.fail(this.#closed))
      const pending: Pending = { outgoing, lastTick: this.#tick + ticksOfLimit, refusals: 0, resume }
      if (this.#waiting.size === 0 && this.#mayWrite(pending)) {
        this.#write(pending)
      } else {
        this.#waiting.add(pending)
        this.#pump()
      }
      return Effect.sync(() => this.#forget(pending))
    })
  }

  /** Starts to use a channel. */
  connected(model: ChannelModel, channel: ConfirmChannel): void {
    this.#model = model
    this.#frames = new FramesTogether(model)
    this.#channel = channel
    this.#isFull = false
    this.#declared.clear()
    this.#returned.clear()
    channel.on("drain", () => {
      this.#isFull = false
      this.#pump()
    })
    channel.on("return", ({ fields, properties }) => {
      const key = keyOf(fields.exchange, properties.messageId)
      this.#returned.set(key, (this.#returned.get(key) ?? 0) + 1)
    })
    this.#pump()
  }

  /** Stops using the channel. `refusal` is RabbitMQ's reason when it closed the channel because of something that was sent on it. */
  disconnected(refusal: RabbitMqError | undefined): void {
    this.#channel = undefined
    this.#model = undefined
    const unconfirmed = [...this.#unconfirmed]
    this.#waiting = new Set([...unconfirmed, ...this.#waiting])
    this.#unconfirmed.clear()
    if (refusal === undefined) return
    const [alone, ...others] = unconfirmed
    if (alone === undefined) return
    if (others.length > 0) this.#suspects = new Set(unconfirmed)
    else if (++alone.refusals >= maxRefusals || !refusal.retryable) this.#end(alone, Effect.fail(refusal))
  }

  /** Counts a tick, and gives up the messages whose time is over. */
  tick(): void {
    this.#tick++
    for (const list of [this.#unconfirmed, this.#waiting]) {
      for (const pending of list) {
        if (pending.lastTick >= this.#tick) break
        this.#end(pending, Effect.fail(this.#reasonOfSilence()))
      }
    }
    this.#pump()
  }

  /** Waits until no message is on its way. */
  readonly idle: Effect.Effect<void> = Effect.callback((resume) => {
    const done = () => resume(Effect.void)
    if (this.#waiting.size + this.#unconfirmed.size === 0) return done()
    this.#onIdle.add(done)
    return Effect.sync(() => this.#onIdle.delete(done))
  })

  /** Fails all messages that are on their way, and all later ones. */
  close(reason: RabbitMqError): void {
    this.#closed = reason
    for (const pending of [...this.#unconfirmed, ...this.#waiting]) this.#end(pending, Effect.fail(reason))
  }

  #mayWrite({ outgoing: { exchange } }: Pending): boolean {
    return (
      this.#channel !== undefined &&
      !this.#isFull &&
      this.#unconfirmed.size < (this.#suspects.size === 0 ? this.#maxUnconfirmed : 1) &&
      (exchange === "" || this.#declared.has(exchange))
    )
  }

  /** Writes waiting messages for as long as the first of them may be written. */
  #pump(): void {
    for (const pending of this.#waiting) {
      if (!this.#mayWrite(pending)) {
        this.#declareFor(pending)
        return
      }
      this.#waiting.delete(pending)
      this.#write(pending)
    }
  }

  #write(pending: Pending): void {
    this.#unconfirmed.add(pending)
    try {
      const { exchange, routingKey, content, options } = pending.outgoing
      const hasRoom = this.#channel!.publish(exchange, routingKey, content, options, (error) =>
        this.#confirmed(pending, error)
      )
      this.#isFull = !hasRoom
      this.#frames?.hold()
    } catch (error) {
      // The channel is being closed: `disconnected` follows, and the message waits for the next one.
      if (error instanceof IllegalOperationError) this.#channel = undefined
      else this.#end(pending, Effect.fail(Failures.unencodable(error)))
    }
  }

  /** A message to an exchange that does not exist would close the channel. Those behind it wait until it is declared, so that the order stays. */
  #declareFor({ outgoing: { exchange } }: Pending): void {
    const model = this.#model
    if (model === undefined || this.#declaring || exchange === "" || this.#declared.has(exchange)) return
    this.#declaring = true
    const done = (effect: () => void) => {
      this.#declaring = false
      effect()
      this.#pump()
    }
    onChannel(model, (channel) => declareExchange(channel, exchange)).then(
      () => done(() => model === this.#model && this.#declared.add(exchange)),
      (error: RabbitMqError) => {
        // `connected` or the next tick goes on: asking again at once would ask a dead connection for ever.
        if (error.reason === "Unreachable") this.#declaring = false
        else done(() => this.#endAll(exchange, error))
      }
    )
  }

  #confirmed(pending: Pending, error: unknown): void {
    const isNack = error instanceof Error && error.message === "message nacked"
    // The channel was closed: `disconnected` keeps the message.
    if (error !== null && !isNack) return
    const isReturned = this.#returned.size > 0 && this.#takeReturned(pending)
    if (isNack) this.#end(pending, Effect.fail(Failures.queueFull(pending.outgoing)))
    else this.#end(pending, isReturned ? Effect.fail(Failures.unroutable(pending.outgoing)) : kept)
    if (this.#waiting.size > 0) this.#pump()
  }

  #takeReturned({ outgoing: { exchange, options } }: Pending): boolean {
    const key = keyOf(exchange, options.messageId)
    const count = this.#returned.get(key) ?? 0
    if (count > 1) this.#returned.set(key, count - 1)
    else this.#returned.delete(key)
    return count > 0
  }

  #endAll(exchange: string, error: RabbitMqError): void {
    for (const pending of this.#waiting) {
      if (pending.outgoing.exchange === exchange) this.#end(pending, Effect.fail(error))
    }
  }

  #end(pending: Pending, result: Effect.Effect<Acknowledgement, RabbitMqError>): void {
    this.#forget(pending)
    pending.resume(result)
  }

  #forget(pending: Pending): void {
    this.#unconfirmed.delete(pending)
    this.#waiting.delete(pending)
    if (this.#suspects.size > 0) this.#suspects.delete(pending)
    if (this.#onIdle.size === 0 || this.#waiting.size + this.#unconfirmed.size > 0) return
    for (const done of this.#onIdle) done()
    this.#onIdle.clear()
  }
}

const keyOf = (exchange: string, messageId: unknown): string => `${exchange}\n${messageId}`
