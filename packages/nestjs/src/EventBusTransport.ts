/**
 * A transport of Nest microservices: existing `@EventPattern` controllers run on the connector, with their pipes, guards, interceptors and filters.
 *
 * ```ts
 * import { EventBusModule, EventBusService } from "@eventbus/nestjs"
 * import { EventBusTransport } from "@eventbus/nestjs/transport"
 * import { Module } from "@nestjs/common"
 * import { NestFactory } from "@nestjs/core"
 *
 * @Module({ imports: [EventBusModule.forRoot({ kafka: { brokers: ["localhost:9092"] } })] })
 * class AppModule {}
 *
 * const app = await NestFactory.createMicroservice(AppModule, {
 *   inject: [EventBusService],
 *   useFactory: (bus: EventBusService) => ({ strategy: new EventBusTransport(bus, { groupId: "billing-server" }) })
 * })
 * app.enableShutdownHooks()
 * await app.listen()
 * ```
 */
import { consumer, type HandlerContext, type KafkaDelivery, Serde } from "@eventbus/node"
import {
  type ConsumerDeserializer,
  type CustomTransportStrategy,
  type KafkaContext,
  KafkaParser,
  type MessageHandler,
  Server,
  Transport
} from "@nestjs/microservices"
import { isObservable, lastValueFrom } from "rxjs"
import { EventBusContext } from "./EventBusContext.ts"
import type { EventBusService } from "./EventBusService.ts"
import * as BusRuntime from "./internal/busRuntime.ts"
import * as KafkaMessage from "./internal/kafkaMessage.ts"
import * as OriginalErrors from "./internal/originalErrors.ts"
import * as Patterns from "./internal/patterns.ts"
import * as TopicOptionsOf from "./internal/topicOptions.ts"
import * as TransportOptions from "./internal/transportOptions.ts"
import type { TopicOptions } from "./TopicOptions.ts"

/** The options of the transport. */
export interface EventBusTransportOptions {
  /** The consumer group. Nest's own transport adds `-server` to the name in its options: write the whole name here, so that the group goes on behind its offsets. */
  readonly groupId: string
  /** The options of every topic. Default: those of each option. */
  readonly consumer?: TopicOptions
  /**
   * The name of one consumer that reads all topics, as Nest's own transport does: every member of the group then reads the same topics, so that a service of several topics moves
   * here, and back, pod by pod. Its topics share options, circuit breaker, `maxInFlight` and commands; retry topics, dead letters, order and offsets are those of each topic.
   * Default: each topic is a consumer of its own, by the name of the topic.
   */
  readonly sharedConsumer?: string
  /** The options of single topics, by name; they win, in `retry`, `circuitBreaker`, `deadLetter` and `idempotency` setting by setting. Refused beside `sharedConsumer`. Default: none. */
  readonly topics?: { readonly [topic: string]: TopicOptions }
  /** How to read messages, as in the options of Nest's Kafka transport. Default: text, and JSON where it looks like an object or an array. */
  readonly parser?: ConstructorParameters<typeof KafkaParser>[0]
  /** Nest's deserializer. Default: the value of the message. */
  readonly deserializer?: ConsumerDeserializer
}

type Message = ReturnType<KafkaContext["getMessage"]>

/** The transport. It belongs to one application, and its consumers to the bus of `EventBusModule`. */
export class EventBusTransport extends Server implements CustomTransportStrategy {
  /** `@EventPattern("orders", Transport.KAFKA)` is meant, too. */
  override readonly transportId: Transport = Transport.KAFKA
  readonly #runtime: BusRuntime.BusRuntime
  readonly #options: EventBusTransportOptions
  readonly #parser: KafkaParser
  readonly #listen: () => Promise<void>
  /** The handlers of each topic, in the order in which Nest found them. */
  readonly #handlers = new Map<string, Array<MessageHandler>>()
  readonly #issues: Array<BusRuntime.Part["issues"][number]> = []

  /** Throws a `TypeError` for a bus that no `EventBusModule` has made, and an `Error` when that bus runs already. */
  constructor(bus: EventBusService, options: EventBusTransportOptions) {
    super()
    const runtime = BusRuntime.of(bus)
    if (runtime === undefined) throw new TypeError("EventBusTransport: the bus is not one of EventBusModule")
    this.#runtime = runtime
    this.#options = options
    this.#parser = new KafkaParser(options.parser)
    OriginalErrors.note()
    this.#listen = runtime.attach(() => this.#part())
  }

  /** Nest calls it for each decorated method. Several on one topic all get each record. */
  override addHandler(
    pattern: unknown,
    callback: MessageHandler,
    isEventHandler = false,
    extras: Record<string, unknown> = {}
  ): void {
    const issue = Patterns.issueOf(pattern, isEventHandler)
    if (issue !== undefined) this.#issues.push(issue)
    const topic = String(pattern)
    const handlers = this.#handlers.get(topic) ?? []
    this.#handlers.set(topic, handlers)
    handlers.push(Object.assign(callback, { isEventHandler, extras }))
    if (handlers.length === 1) this.messageHandlers.set(topic, callback)
  }

  /** Nest calls it. The consumers start when the application is up; until then it is enough to know that they shall. */
  async listen(callback: (error?: unknown) => void): Promise<void> {
    try {
      await this.#listen()
      callback()
    } catch (error) {
      callback(error)
    }
  }

  /** Nest calls it. Drains the bus. */
  close(): Promise<void> {
    return this.#runtime.stop()
  }

  /** There are no events of a client: the option `onEvent` of the bus has those of the connector. */
  override on(): never {
    throw new Error("EventBusTransport has no events of its own: use the option onEvent of EventBusModule")
  }

  /** The bus. */
  override unwrap<T = EventBusService>(): T {
    return this.#runtime.bus as T
  }

  #part(): BusRuntime.Part {
    const handled = Array.from(this.#handlers.keys())
    return {
      consumers: this.#consumers(handled),
      issues: [...this.#issues, ...TransportOptions.issuesOf(this.#options, handled)]
    }
  }

  #consumers(handled: ReadonlyArray<string>): BusRuntime.Part["consumers"] {
    const { sharedConsumer, consumer: common, topics = {} } = this.#options
    if (sharedConsumer === undefined)
      return handled.map((topic) => [topic, this.#consumer(topic, TopicOptionsOf.of(common, topics[topic]))] as const)
    // Sorted: Nest finds handlers in the order of imports, and the first topic of a consumer should stay the first.
    const [first, ...others] = handled.toSorted()
    if (first === undefined) return []
    return [[sharedConsumer, this.#consumer(others.length === 0 ? first : [first, ...others], common)]]
  }

  #consumer(topic: string | ReadonlyArray<string>, options: TopicOptions = {}) {
    const { value } = options
    return consumer<unknown, unknown>({
      value: Serde.bytes as Serde.Serde<unknown>,
      groupId: this.#options.groupId,
      ...options,
      topic,
      handler: async (delivery, context) => {
        const first = typeof topic === "string" ? topic : KafkaMessage.originOf(delivery).topic
        const handlers = this.#handlers.get(first)
        // Only a record that somebody else wrote into a retry topic, without its headers. To drop it would lose it.
        if (handlers === undefined) throw new Error(`no header says which topic a record of '${first}' was first in`)
        const message = KafkaMessage.parsed(this.#parser, first, delivery)
        const payload = value === undefined ? await this.#payload(first, message) : delivery.value
        const calls = handlers.map((handler) => this.#call(handler, first, message, payload, delivery, context))
        // All have ended before the record counts as handled or is tried again.
        const failed = (await Promise.allSettled(calls)).find(({ status }) => status === "rejected")
        if (failed?.status === "rejected") throw failed.reason
      }
    })
  }

  async #payload(topic: string, message: Message): Promise<unknown> {
    const { deserializer } = this.#options
    // As Nest's Kafka transport: a tombstone is the whole message.
    if (deserializer === undefined) return message.value ?? message
    return (await deserializer.deserialize(message, { channel: topic })).data
  }

  async #call(
    handler: MessageHandler,
    topic: string,
    message: Message,
    payload: unknown,
    delivery: KafkaDelivery<unknown, unknown>,
    handlerContext: HandlerContext
  ): Promise<void> {
    const { bus } = this.#runtime
    const { partition } = KafkaMessage.originOf(delivery)
    const heartbeat = () => Promise.resolve()
    const context = new EventBusContext(
      [message, partition, topic, KafkaMessage.consumerOf(), heartbeat, KafkaMessage.producerOf(bus)],
      delivery,
      handlerContext
    )
    await new Promise<void>((resolve, reject) => {
      const run = async () => {
        try {
          const answer: unknown = await handler(payload, context)
          if (isObservable(answer)) await lastValueFrom(answer, { defaultValue: undefined })
        } finally {
          this.onProcessingEndHook?.(this.transportId, context)
        }
      }
      const done = () => run().then(resolve, (error: unknown) => reject(OriginalErrors.of(context, error)))
      this.onProcessingStartHook(this.transportId, context, done)
    })
  }
}
