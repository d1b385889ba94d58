/** A bus on a cluster in memory, and how a test waits for it. */
import { createEventBus, type EventBus, type EventBusOptions } from "@eventbus/node"
import { type MemoryKafka, memoryKafka } from "@eventbus/node/testing"
import { onTestFinished, vi } from "vitest"

export interface TestedBus {
  readonly bus: EventBus
  readonly kafka: MemoryKafka
  /** The lines of the log. */
  readonly lines: ReadonlyArray<string>
}

/** Starts a bus with topic `orders`. The end of the test stops it. */
export const startBus = async (options: Omit<EventBusOptions, "kafka">): Promise<TestedBus> => {
  const kafka = memoryKafka({ topics: { orders: 1 } })
  const lines: Array<string> = []
  const bus = createEventBus({ kafka, signals: [], log: ({ message }) => void lines.push(message), ...options })
  onTestFinished(async () => {
    await bus.stop()
    await kafka.close()
  })
  await bus.start()
  return { bus, kafka, lines }
}

/** Waits until the condition holds. */
export const until = (condition: () => boolean | Promise<boolean>): Promise<void> =>
  vi.waitFor(
    async () => {
      if (!(await condition())) throw new Error("not yet")
    },
    { timeout: 10_000, interval: 5 }
  )
