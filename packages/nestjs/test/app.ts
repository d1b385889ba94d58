/** Nest applications on a cluster in memory, and how a test waits for them. */
import "reflect-metadata"
import { EventBusModule, type EventBusModuleOptions, EventBusService } from "@eventbus/nestjs"
import { EventBusTransport, type EventBusTransportOptions } from "@eventbus/nestjs/transport"
import { type MemoryKafka, memoryKafka } from "@eventbus/node/testing"
import {
  type INestApplicationContext,
  type INestMicroservice,
  Module,
  type ModuleMetadata,
  type Type
} from "@nestjs/common"
import { NestFactory } from "@nestjs/core"
import { onTestFinished, vi } from "vitest"

/** A cluster with these topics. The end of the test ends it, behind the applications. */
export const kafkaWith = (...topics: ReadonlyArray<string>): MemoryKafka => {
  const kafka = memoryKafka({ topics: Object.fromEntries(topics.map((topic) => [topic, 1])) })
  onTestFinished(() => kafka.close())
  return kafka
}

/** Without lines in the output of the tests. */
export const quiet = { logger: false, abortOnError: false } as const

/** The root of an application whose bus is on the cluster. */
export const rootOf = (kafka: MemoryKafka, metadata: ModuleMetadata, options: Partial<EventBusModuleOptions> = {}) => {
  class Root {}
  Module({
    ...metadata,
    imports: [EventBusModule.forRoot({ kafka, log: "off", ...options }), ...(metadata.imports ?? [])]
  })(Root)
  return Root
}

/** Closed at the end of the test, where the test has not done it. */
export const closing = <A extends INestApplicationContext>(app: A): A => {
  onTestFinished(() => app.close())
  return app
}

/** An application without HTTP and without a transport, started. */
export const startContext = async (root: Type) => closing(await NestFactory.createApplicationContext(root, quiet))

/** A microservice on the transport. */
export const microservice = async (
  root: Type,
  options: Partial<EventBusTransportOptions> = {}
): Promise<INestMicroservice> =>
  closing(
    await NestFactory.createMicroservice(root, {
      ...quiet,
      inject: [EventBusService],
      useFactory: (bus: EventBusService) => ({
        strategy: new EventBusTransport(bus, { groupId: "billing-server", ...options })
      })
    })
  )

/** Waits until the condition holds. */
export const until = (condition: () => boolean | Promise<boolean>): Promise<void> =>
  vi.waitFor(
    async () => {
      if (!(await condition())) throw new Error("not yet")
    },
    { timeout: 10_000, interval: 5 }
  )

/** The reason of a rejection. */
export const reasonOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (reason: unknown) => reason
  )

/** No retry waits long. */
export const fast = { retry: { blocking: { maxAttempts: 2, initialBackoff: 1 }, tiers: ["10ms"] } } as const

/** Ends once `done` is called. */
export const latch = () => {
  let done = () => {}
  const opened = new Promise<void>((resolve) => {
    done = resolve
  })
  return { opened, done: () => done() }
}
