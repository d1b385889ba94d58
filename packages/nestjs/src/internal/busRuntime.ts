/**
 * The bus of a module, with the parts of the application that bring consumers: the decorated methods and the transports. It alone decides when the bus starts: when the
 * application is up, and each transport has been told to listen.
 */
import { type Consumer, createEventBus, type EventBus, EventBusError, type EventBusOptions } from "@eventbus/node"

/** The name of the bus that has none. */
export const defaultName = "default"

/** The contribution of a part to the bus. */
export interface Part {
  /** Consumers by name. */
  readonly consumers: ReadonlyArray<readonly [name: string, consumer: Consumer]>
  /** The mistakes in it. */
  readonly issues: ReadonlyArray<EventBusError.ConfigurationIssue>
}

/** A bus, and when it starts. */
export interface BusRuntime {
  readonly name: string
  readonly bus: EventBus
  /** A transport that will bring consumers. Answers how it listens. Throws when the bus has started already. */
  readonly attach: (part: () => Part) => () => Promise<void>
  /** The application is up. Rejects where the bus cannot start. */
  readonly bootstrap: (handlers: () => Part) => Promise<void>
  /** Drains the bus. */
  readonly stop: () => Promise<void>
}

const runtimes = new WeakMap<object, BusRuntime>()

/** The runtime of a bus. Undefined for what no module has made. */
export const of = (bus: unknown): BusRuntime | undefined =>
  typeof bus === "object" && bus !== null ? runtimes.get(bus) : undefined

export const make = (name: string, options: EventBusOptions): BusRuntime => {
  // The bus reads its consumers when it starts, and they are known then.
  const consumers: Record<string, Consumer> = {}
  const bus = createEventBus({ ...options, consumers })
  const parts: Array<() => Part> = [() => ({ consumers: Object.entries(options.consumers ?? {}), issues: [] })]
  let silentTransports = 0
  let isUp = false
  let hasBegun = false
  const startWhenComplete = async () => {
    if (!isUp || silentTransports > 0) return
    hasBegun = true
    Object.assign(consumers, collected(parts.map((part) => part())))
    await bus.start()
  }
  const runtime: BusRuntime = {
    name,
    bus,
    attach: (part) => {
      if (hasBegun) throw new Error(late)
      parts.push(part)
      silentTransports += 1
      let isSilent = true
      return () => {
        if (isSilent) silentTransports -= 1
        isSilent = false
        return startWhenComplete()
      }
    },
    bootstrap: (handlers) => {
      parts.push(handlers)
      isUp = true
      return startWhenComplete()
    },
    stop: () => bus.stop()
  }
  runtimes.set(bus, runtime)
  return runtime
}

const late = "EventBusTransport: the bus runs already. Connect the microservice before app.init() or app.listen()."

/** All consumers, or all mistakes at once. */
const collected = (parts: ReadonlyArray<Part>): Record<string, Consumer> => {
  const consumers = parts.flatMap((part) => part.consumers)
  const counts = new Map<string, number>()
  for (const [name] of consumers) counts.set(name, (counts.get(name) ?? 0) + 1)
  const repeated = Array.from(counts).filter(([, count]) => count > 1)
  const issues = [
    ...parts.flatMap((part) => part.issues),
    ...repeated.map(([name, count]) => ({
      path: `consumers.${name}`,
      found: `${count} consumers of that name`,
      allowed: "a name for each: @KafkaHandler takes `name`"
    }))
  ]
  if (issues.length > 0) throw new EventBusError.ConfigurationValidation({ issues })
  return Object.fromEntries(consumers)
}
