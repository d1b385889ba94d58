/** The life of a bus: start, stop, signals, health, commands. */
import {
  consumer,
  createEventBus,
  EventBusError,
  EventBusNotRunning,
  NotReady,
  on,
  retry,
  Serde,
  StartInterrupted
} from "@eventbus/node"
import { memoryKafka } from "@eventbus/node/testing"
import { Effect } from "effect"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { startBus, until } from "./bus.ts"

const base = { topic: "orders", groupId: "billing", value: Serde.string }
const ignoring = consumer({ ...base, handler: () => undefined })
const quiet = { signals: [], log: "off" } as const

describe("a bus", () => {
  it("RCH-06: start, ready, publish, stop, and again: a stopped bus starts anew and goes on behind its committed offset", async () => {
    const handled: Array<string> = []
    const { bus, kafka } = await startBus({
      consumers: { orders: consumer({ ...base, handler: ({ value }) => void handled.push(value) }) }
    })
    await bus.ready()
    expect(bus.health()).toEqual({ status: "UP", live: true, ready: true, reasons: [] })
    await bus.publish("orders", { value: "o-1" })
    await until(() => handled.length === 1)
    await bus.stop()
    expect(await kafka.committed("billing", "orders", 0)).toBe(1n)
    expect(bus.health()).toMatchObject({ status: "DOWN", live: true, ready: false, reasons: [{ type: "NotRunning" }] })
    await bus.start()
    await bus.publish("orders", { value: "o-2" })
    await until(() => handled.length === 2)
    expect(handled).toEqual(["o-1", "o-2"])
  })

  it("RCH-06: a bus that only publishes is ready once it has started", async () => {
    const { bus } = await startBus({})
    expect(bus.health()).toEqual({ status: "UP", live: true, ready: true, reasons: [] })
    await bus.stop()
    expect(bus.health()).toMatchObject({ ready: false, reasons: [{ type: "NotRunning" }] })
  })

  it("RCH-06: each line of the text log begins with its time", async () => {
    const lines: Array<string> = []
    const spy = vi.spyOn(console, "log").mockImplementation((line: string) => void lines.push(line))
    onTestFinished(() => spy.mockRestore())
    const { bus } = await startBus({ consumers: { orders: ignoring }, log: "text" })
    await bus.ready()
    await bus.stop()
    expect(lines.length).toBeGreaterThan(0)
    for (const line of lines) expect(line).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [A-Z]+ /)
    expect(lines.join("\n")).toMatch(/Z INFO \[orders\|.* Binding is DESTROYED/)
  })

  it("RCH-06: a bus that drains is not ready from the first moment on, and stays live", async () => {
    let end = () => {}
    let hasBegun = false
    const handler = () => {
      hasBegun = true
      return new Promise<void>((resolve) => {
        end = resolve
      })
    }
    const { bus } = await startBus({ consumers: { orders: consumer({ ...base, handler }) } })
    await bus.ready()
    await bus.publish("orders", { value: "o-1" })
    await until(() => hasBegun)
    const stopped = bus.stop()
    expect(bus.health()).toMatchObject({ status: "DEGRADED", live: true, ready: false })
    expect(bus.health().reasons[0]).toEqual({ type: "Closing", message: "The connector is closing" })
    end()
    await stopped
  })

  it("RCH-06: another bus takes over after a stop, as in a hot reload", async () => {
    const kafka = memoryKafka({ topics: { orders: 1 } })
    const handled: Array<string> = []
    for (const version of ["v1", "v2"]) {
      const handler = ({ value }: { readonly value: string }) => void handled.push(`${version} ${value}`)
      const bus = createEventBus({ kafka, ...quiet, consumers: { orders: consumer({ ...base, handler }) } })
      await bus.start()
      await bus.publish("orders", { value: version })
      await until(() => handled.some((line) => line.startsWith(version)))
      await bus.stop()
    }
    await kafka.close()
    expect(handled).toEqual(["v1 v1", "v2 v2"])
  })

  it("RCH-06: two buses of one process share a cluster, and one stops without the other", async () => {
    const { bus, kafka } = await startBus({ consumers: { orders: ignoring } })
    const handled: Array<string> = []
    const handler = ({ value }: { readonly value: string }) => void handled.push(value)
    const other = createEventBus({
      kafka,
      ...quiet,
      consumers: { orders: consumer({ ...base, groupId: "audit", handler }) }
    })
    await other.start()
    await bus.stop()
    await other.publish("orders", { value: "o-1" })
    await until(() => handled.length === 1)
    await other.stop()
  })

  it("the order per key reaches the core: what it refuses is told by the names of the options", async () => {
    const perKey = { ...base, orderingMode: "PER_KEY", handler: () => undefined } as const
    const bus = createEventBus({
      ...quiet,
      kafka: memoryKafka(),
      consumers: {
        orders: consumer({ ...perKey, perKey: { onDeadLetter: "hold", holdFor: "1h" }, processingOrder: "unordered" }),
        range: consumer({ ...perKey, groupId: "b", perKey: { holdFor: 0, maxParkedKeys: 0, maxParkedBytes: 0 } }),
        other: consumer({ ...base, groupId: "c", perKey: { holdFor: "1h" }, handler: () => undefined })
      }
    })
    const error = await bus.start().then(
      () => undefined,
      (reason: unknown) => reason
    )
    const paths = (error as EventBusError.ConfigurationValidation).issues.map(({ path }) => path)
    expect(paths.filter((path) => !path.endsWith("naming"))).toEqual([
      "consumers.range.perKey.holdFor",
      "consumers.range.perKey.maxParkedKeys",
      "consumers.range.perKey.maxParkedBytes",
      "consumers.orders.processingOrder",
      "consumers.other.perKey"
    ])
  })

  it("RCH-06: a start with mistakes rejects with all of them, by the names of the options, and nothing runs", async () => {
    const bus = createEventBus({
      ...quiet,
      kafka: memoryKafka(),
      consumers: {
        orders: consumer({ ...base, cluster: "dr", maxPollInterval: "soon", handler: () => undefined }),
        refunds: consumer({ topic: "refunds", groupId: "", retry: { tiers: ["1m", "1m"] }, handler: () => undefined })
      },
      fleet: { controlTopic: "no topic" }
    })
    const error = await bus.start().then(
      () => undefined,
      (reason: unknown) => reason
    )
    expect(error).toBeInstanceOf(EventBusError.ConfigurationValidation)
    const paths = (error as EventBusError.ConfigurationValidation).issues.map(({ path }) => path)
    expect(paths).toEqual(
      expect.arrayContaining([
        "consumers.orders.cluster",
        "consumers.orders.maxPollInterval",
        "consumers.refunds.groupId",
        "fleet.controlTopic"
      ])
    )
    expect((error as Error).message).toContain('consumers.orders.maxPollInterval: found "soon"')
    expect(bus.health().status).toBe("DOWN")
    await bus.stop()
  })

  it.each([
    ["a cluster that is a text", { kafka: "localhost:9092" }, 'kafka: found "localhost:9092"'],
    [
      "an unknown transport",
      { kafka: { brokers: ["a:1"], transport: "librdkafka" } },
      'kafka.transport: found \'librdkafka\', allowed is "kafkajs" or "kafka"'
    ],
    [
      "an unknown transport of another cluster",
      { clusters: { dr: { brokers: ["a:1"], transport: null } } },
      'clusters.dr.transport: found null, allowed is "kafkajs" or "kafka"'
    ],
    ["no cluster", { consumers: {} }, "kafka: found nothing"],
    ["an unknown option", { consumer: {} }, "consumer: found an unknown option"],
    [
      "a consumer that is none",
      { consumers: { orders: { topic: "orders" } } },
      "consumers.orders: found something else"
    ],
    [
      "a misspelled setting",
      { consumers: { orders: consumer({ ...base, handler: () => undefined, maxPolInterval: 3 } as never) } },
      "did you mean that?"
    ],
    [
      "idempotency without a store",
      { consumers: { orders: consumer({ ...base, handler: () => undefined, idempotency: {} }) } },
      "idempotencyStore: found nothing"
    ],
    [
      "a strategy without its function",
      { consumers: { orders: consumer({ ...base, handler: () => undefined, deadLetter: { strategy: "CUSTOM" } }) } },
      "consumers.orders.deadLetter.strategy"
    ],
    ["a cluster of another kind", { kafka: { brokers: ["nowhere"] } }, "brokers"]
  ])("RCH-06: a start with %s rejects with words", async (_, options, words) => {
    const bus = createEventBus({
      ...quiet,
      ...(words.startsWith("kafka: found nothing") ? {} : { kafka: memoryKafka() }),
      ...options
    } as never)
    await expect(bus.start()).rejects.toThrow(words)
  })

  it("RCH-06: a second start is the first one; a second stop is the first one; a stop before any start has nothing to do", async () => {
    const kafka = memoryKafka({ topics: { orders: 1 } })
    const bus = createEventBus({ kafka, ...quiet, consumers: { orders: ignoring } })
    await bus.stop()
    expect(bus.start()).toBe(bus.start())
    await bus.start()
    expect(bus.stop()).toBe(bus.stop())
    await bus.stop()
    await kafka.close()
  })

  it("RCH-06: a stop during the start ends it: the start rejects, and nothing runs", async () => {
    const kafka = memoryKafka({ topics: { orders: 1 } })
    const never = { ...kafka, broker: { ...kafka.broker, admin: Effect.never, reader: () => Effect.never } }
    const bus = createEventBus({ kafka: never, ...quiet, fleet: {}, consumers: { orders: ignoring } })
    const started = bus.start().catch((reason: unknown) => reason)
    await bus.stop()
    expect(await started).toBeInstanceOf(StartInterrupted)
    expect(bus.health().status).toBe("DOWN")
    await kafka.close()
  })

  it("RCH-06: methods of a bus that does not run reject, and say so", async () => {
    const bus = createEventBus({ kafka: memoryKafka(), ...quiet })
    await expect(bus.publish("orders", { value: "o-1" })).rejects.toThrow("publish: the event bus does not run")
    await expect(bus.pause("orders")).rejects.toBeInstanceOf(EventBusNotRunning)
    await expect(bus.ready()).rejects.toBeInstanceOf(EventBusNotRunning)
  })

  it("RCH-06: ready rejects after its timeout, and says what is missing", async () => {
    const { bus } = await startBus({
      consumers: { orders: consumer({ ...base, topic: "missing", handler: () => undefined }) }
    })
    await expect(bus.ready({ timeout: "100ms" })).rejects.toBeInstanceOf(NotReady)
    await expect(bus.ready({ timeout: 100 })).rejects.toThrow(/not ready after 100 ms: .*orders/)
  })

  it("RCH-06: pause and resume hold a consumer", async () => {
    const handled: Array<string> = []
    const { bus } = await startBus({
      consumers: { orders: consumer({ ...base, handler: ({ value }) => void handled.push(value) }) }
    })
    await bus.ready()
    await bus.pause("orders")
    expect(bus.health()).toMatchObject({ status: "DEGRADED", ready: false, reasons: [{ type: "Paused" }] })
    await bus.publish("orders", { value: "o-1" })
    await bus.resume("orders")
    await until(() => handled.length === 1)
    await expect(bus.pause("refunds")).rejects.toBeInstanceOf(EventBusError.BindingNotFound)
  })

  it("RCH-06: dead letters are listed, read and replayed", async () => {
    let isBroken = true
    const handled: Array<string> = []
    const { bus, kafka } = await startBus({
      consumers: {
        orders: consumer({
          ...base,
          handler: async ({ value }) => {
            if (isBroken) throw new Error("down")
            handled.push(value)
          },
          onError: [on(TypeError, retry)],
          retry: { blocking: { maxAttempts: 1 }, tiers: [] }
        })
      }
    })
    await bus.publish("orders", { key: "k", value: "o-1" })
    await until(async () => (await kafka.records("orders.DLT")).length === 1)
    const deadLetters = await bus.deadLetters("orders")
    const { letters } = await deadLetters.letters({ states: ["waiting"] })
    expect(letters).toMatchObject([{ partition: 0, offset: 0n, exceptionMessage: "down", key: "k" }])
    isBroken = false
    expect(await deadLetters.replay(10)).toMatchObject({ replayed: 1 })
    await until(() => handled.length === 1)
    expect((await deadLetters.stats()).count).toBe(0)
    const commands = await bus.commands()
    expect((await commands.listBindings()).map(({ name }) => name)).toEqual(["orders"])
  })

  it("RCH-06: events and log lines reach plain functions", async () => {
    const events: Array<string> = []
    const { bus, lines } = await startBus({
      consumers: { orders: ignoring },
      onEvent: ({ _tag }) => void events.push(_tag)
    })
    await bus.publish("orders", { value: "o-1" })
    await until(() => events.includes("Committed"))
    await bus.stop()
    expect(lines.length).toBeGreaterThan(0)
  })

  it("RCH-06: a signal stops all buses once; the process ends by it only where nobody else listens", async () => {
    const kafka = memoryKafka({ topics: { orders: 1 } })
    const kill = vi.spyOn(process, "kill").mockReturnValue(true)
    onTestFinished(() => kill.mockRestore())
    const options = { kafka, log: "off", signals: ["SIGUSR2", "SIGPROF"], consumers: { orders: ignoring } } as const
    const buses = [createEventBus(options), createEventBus(options)]
    const signal = async () => {
      for (const bus of buses) await bus.start()
      expect(process.listenerCount("SIGUSR2")).toBe(1 + others.length)
      process.emit("SIGUSR2")
      expect(process.listenerCount("SIGUSR2")).toBe(others.length)
      expect(process.listenerCount("SIGPROF")).toBe(0)
      for (const bus of buses) await bus.stop()
      await new Promise((resolve) => setImmediate(resolve))
    }
    const others: Array<() => void> = []
    await signal()
    expect(kill.mock.calls).toEqual([[process.pid, "SIGUSR2"]])
    const other = () => undefined
    others.push(other)
    process.on("SIGUSR2", other)
    await signal()
    process.off("SIGUSR2", other)
    expect(kill).toHaveBeenCalledTimes(1)
    await kafka.close()
  })

  it("RCH-06: a stop takes the listeners of signals away", async () => {
    const kafka = memoryKafka({ topics: { orders: 1 } })
    const before = process.listenerCount("SIGTERM")
    const bus = createEventBus({ kafka, log: "off", consumers: { orders: ignoring } })
    await bus.start()
    expect(process.listenerCount("SIGTERM")).toBe(before + 1)
    await bus.stop()
    expect(process.listenerCount("SIGTERM")).toBe(before)
    await kafka.close()
  })
})
