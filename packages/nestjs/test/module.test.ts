/** Handlers by decorator, and the life of the bus in an application. */
import {
  EventBusModule,
  EventBusService,
  InjectEventBus,
  KafkaBatchHandler,
  KafkaHandler,
  KafkaTransactionHandler,
  liveness,
  readiness
} from "@eventbus/nestjs"
import { EventBusTransport } from "@eventbus/nestjs/transport"
import {
  deadLetter,
  EventBusError,
  EventBusNotRunning,
  type HandlerContext,
  type KafkaBatch,
  type KafkaDelivery,
  on,
  Serde,
  type TransactionContext
} from "@eventbus/node"
import { Controller, Get, Global, HttpCode, Inject, Injectable, Module, Scope } from "@nestjs/common"
import { NestFactory } from "@nestjs/core"
import { EventPattern } from "@nestjs/microservices"
import { HealthCheckService, TerminusModule } from "@nestjs/terminus"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { closing, fast, kafkaWith, latch, microservice, quiet, reasonOf, rootOf, startContext, until } from "./app.ts"

const orders = { topic: "orders", groupId: "billing", value: Serde.string } as const

describe("RCH-07 @KafkaHandler", () => {
  it("methods of providers and controllers handle records, batches and transactions, with injected providers and every option", async () => {
    class CardDeclined extends Error {}
    const kafka = kafkaWith("orders", "readings", "payments", "invoices")
    @Injectable()
    class Gateway {
      readonly charged: Array<string> = []
    }
    @Injectable()
    class Billing {
      readonly gateway: Gateway
      constructor(gateway: Gateway) {
        this.gateway = gateway
      }
      @KafkaHandler({ ...orders, ...fast, name: "billing", onError: [on(CardDeclined, deadLetter("declined"))] })
      async onOrder({ value }: KafkaDelivery<string>, { signal }: HandlerContext) {
        if (value === "declined") throw new CardDeclined("no funds")
        this.gateway.charged.push(`${value} ${signal.aborted}`)
      }
    }
    @Controller()
    class Readings {
      @Inject(Gateway) readonly gateway!: Gateway
      @KafkaBatchHandler({ topic: "readings", groupId: "storage", value: Serde.string })
      async onReadings({ deliveries }: KafkaBatch<string>) {
        this.gateway.charged.push(...deliveries.map(({ value }) => value))
      }
      @KafkaTransactionHandler({ topic: "payments", groupId: "invoicing", value: Serde.string })
      async onPayment({ value }: KafkaDelivery<string>, { producer }: TransactionContext) {
        await producer.publish("invoices", { value })
      }
    }
    const app = await startContext(rootOf(kafka, { providers: [Gateway, Billing], controllers: [Readings] }))
    const bus = app.get(EventBusService)
    await bus.publishAll("orders", [{ value: "declined" }, { value: "o-1" }])
    await bus.publish("readings", { value: "r-1" })
    await bus.publish("payments", { value: "p-1" })
    await until(async () => (await kafka.records("invoices")).length === 1)
    const { charged } = app.get(Gateway)
    await until(() => charged.length === 2)
    expect(new Set(charged)).toEqual(new Set(["o-1 false", "r-1"]))
    await until(async () => (await kafka.records("orders.DLT")).length === 1)
    const names = (await (await bus.commands()).listBindings()).map(({ name }) => name)
    expect(new Set(names)).toEqual(new Set(["billing", "Readings.onReadings", "Readings.onPayment"]))
  })

  it("one instance handles each record once, however many modules have it; a subclass handles what its base class says", async () => {
    const kafka = kafkaWith("orders")
    const seen: Array<string> = []
    class Base {
      @KafkaHandler(orders)
      onOrder({ value }: KafkaDelivery<string>) {
        seen.push(`${this.constructor.name} ${value}`)
      }
    }
    @Injectable()
    class Billing extends Base {}
    const app = await startContext(rootOf(kafka, { providers: [Billing, { provide: "alias", useExisting: Billing }] }))
    await app.get(EventBusService).publish("orders", { value: "o-1" })
    await until(async () => (await kafka.committed("billing", "orders", 0)) === 1n)
    expect(seen).toEqual(["Billing o-1"])
  })

  it("a provider in the scope of a request, an unknown bus and a name that two have are refused together, and nothing runs", async () => {
    const kafka = kafkaWith("orders")
    @Injectable({ scope: Scope.REQUEST })
    class PerRequest {
      @KafkaHandler(orders)
      onOrder() {}
    }
    @Injectable()
    class Lost {
      @KafkaHandler({ ...orders, bus: "dr" })
      onOrder() {}
    }
    @Injectable()
    class Twice {
      @KafkaHandler({ ...orders, name: "same" })
      first() {}
      @KafkaHandler({ ...orders, name: "same" })
      second() {}
    }
    const error = await reasonOf(startContext(rootOf(kafka, { providers: [PerRequest, Lost, Twice] })))
    expect(error).toBeInstanceOf(EventBusError.ConfigurationValidation)
    expect((error as EventBusError.ConfigurationValidation).issues.map(({ path, found }) => [path, found])).toEqual([
      ["PerRequest.onOrder", "a provider in the scope of a request"],
      ["Lost.onOrder.bus", '"dr"'],
      ["consumers.same", "2 consumers of that name"]
    ])
  })

  it("a mistake in an option fails the start with its path", async () => {
    @Injectable()
    class Billing {
      @KafkaHandler({ ...orders, maxPollInterval: "soon" })
      onOrder() {}
    }
    const start = startContext(rootOf(kafkaWith("orders"), { providers: [Billing] }))
    await expect(start).rejects.toThrow('consumers["Billing.onOrder"].maxPollInterval: found "soon"')
  })

  it("a handler takes the order per key, and what it refuses is told by the names of the options", async () => {
    @Injectable()
    class Ledger {
      @KafkaHandler({ ...orders, orderingMode: "PER_KEY", perKey: { holdFor: "1h" }, onExhausted: "halt" })
      onOrder() {}
    }
    const start = startContext(rootOf(kafkaWith("orders"), { providers: [Ledger] }))
    await expect(start).rejects.toThrow('consumers["Ledger.onOrder"].onExhausted')
  })
})

/** A module whose provider notes its hooks, as a pool of connections would open and close in them. */
const noting = (name: string, steps: Array<string>, isGlobal = false) => {
  @Injectable()
  class Pool {
    onModuleInit() {
      steps.push(`${name} init`)
    }
    async onApplicationBootstrap() {
      await new Promise((resolve) => setTimeout(resolve, 5))
      steps.push(`${name} bootstrapped`)
    }
    onModuleDestroy() {
      steps.push(`${name} destroyed`)
    }
    beforeApplicationShutdown() {
      steps.push(`${name} before shutdown`)
    }
  }
  class Holder {}
  Module({ providers: [Pool], exports: [Pool] })(Holder)
  if (isGlobal) Global()(Holder)
  return { Pool, Holder }
}

/** The providers of every place that a handler may use, and a handler that is busy. */
const busyApp = () => {
  const kafka = kafkaWith("orders")
  const steps: Array<string> = []
  const began = latch()
  const mayEnd = latch()
  const near = noting("root", steps)
  const far = noting("imported", steps)
  const everywhere = noting("global", steps, true)
  const busy = async () => {
    steps.push("handler began")
    began.done()
    await mayEnd.opened
    steps.push("handler ended")
  }
  const metadata = { imports: [far.Holder, everywhere.Holder], providers: [near.Pool] }
  const order = async (
    app: { readonly get: (type: typeof EventBusService) => EventBusService },
    end: () => unknown
  ) => {
    await app.get(EventBusService).publish("orders", { value: "o-1" })
    await began.opened
    const ended = end()
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect(steps.at(-1)).toBe("handler began")
    expect(readiness("kafka", app.get(EventBusService)).kafka.status).toBe("down")
    mayEnd.done()
    await ended
    await until(() => steps.includes("global before shutdown"))
    const bootstrapped = steps.filter((step) => step.endsWith("bootstrapped"))
    expect(new Set(bootstrapped)).toEqual(
      new Set(["root bootstrapped", "imported bootstrapped", "global bootstrapped"])
    )
    expect(steps.indexOf("handler began")).toBeGreaterThan(Math.max(...bootstrapped.map((step) => steps.indexOf(step))))
    expect(steps.indexOf("handler ended")).toBeLessThan(steps.findIndex((step) => step.endsWith("destroyed")))
  }
  return { kafka, metadata, busy, order }
}

/** Nest ends the process by the signal when it has closed. */
const signalled = (signal: NodeJS.Signals) => {
  const kill = vi.spyOn(process, "kill").mockReturnValue(true)
  onTestFinished(() => kill.mockRestore())
  return async () => {
    process.emit(signal)
    await until(() => kill.mock.calls.length > 0)
  }
}

describe("RCH-07 the lifecycle", () => {
  it("close(): handlers begin behind every bootstrap hook, and end before anything that they use is destroyed", async () => {
    const { kafka, metadata, busy, order } = busyApp()
    @Injectable()
    class Billing {
      @KafkaHandler({ ...orders, groupId: "billing-server" })
      onOrder() {
        return busy()
      }
    }
    const app = await startContext(rootOf(kafka, { ...metadata, providers: [...metadata.providers, Billing] }))
    await order(app, () => app.close())
    expect(await kafka.committed("billing-server", "orders", 0)).toBe(1n)
  })

  it.each(["close", "SIGUSR2"] as const)("%s of a microservice: the same for its controllers", async (end) => {
    const { kafka, metadata, busy, order } = busyApp()
    @Controller()
    class Orders {
      @EventPattern<string>("orders")
      onOrder() {
        return busy()
      }
    }
    const app = await microservice(rootOf(kafka, { ...metadata, controllers: [Orders] }))
    app.enableShutdownHooks(["SIGUSR2"])
    await app.listen()
    await order(app, end === "close" ? () => app.close() : signalled(end))
    expect(await kafka.committed("billing-server", "orders", 0)).toBe(1n)
  })

  it.each(["listen", "init"] as const)(
    "an application with HTTP, whose microservices start before or behind its %s: the same",
    async (first) => {
      const { kafka, metadata, busy, order } = busyApp()
      @Controller()
      class Orders {
        @EventPattern<string>("orders")
        onOrder() {
          return busy()
        }
      }
      const app = closing(await NestFactory.create(rootOf(kafka, { ...metadata, controllers: [Orders] }), quiet))
      app.connectMicroservice({
        strategy: new EventBusTransport(app.get(EventBusService), { groupId: "billing-server" })
      })
      if (first === "init") await app.init()
      expect(app.get(EventBusService).health().reasons[0]?.type).toBe("NotRunning")
      await app.startAllMicroservices()
      await app.listen(0)
      await order(app, () => app.close())
      expect(await kafka.committed("billing-server", "orders", 0)).toBe(1n)
    }
  )

  it("an application that fails in onModuleInit or onApplicationBootstrap leaves no consumer", async () => {
    const kafka = kafkaWith("orders")
    let handled = 0
    for (const hook of ["onModuleInit", "onApplicationBootstrap"]) {
      @Injectable()
      class Broken {
        constructor() {
          Object.assign(this, { [hook]: () => Promise.reject(new Error(`${hook} failed`)) })
        }
        @KafkaHandler(orders)
        onOrder() {
          handled += 1
        }
      }
      const app = await NestFactory.create(rootOf(kafka, { providers: [Broken] }), quiet)
      await expect(app.listen(0)).rejects.toThrow(`${hook} failed`)
      expect(app.get(EventBusService).health().reasons[0]?.type).toBe("NotRunning")
      await expect(app.get(EventBusService).publish("orders", { value: "o-1" })).rejects.toBeInstanceOf(
        EventBusNotRunning
      )
      await reasonOf(app.close())
    }
    expect(handled).toBe(0)
  })

  it("hot reload: the same root closed and created again goes on behind its committed offset", async () => {
    const kafka = kafkaWith("orders")
    const seen: Array<string> = []
    @Controller()
    class Orders {
      @EventPattern("orders")
      onOrder(order: string) {
        seen.push(order)
      }
    }
    const root = rootOf(kafka, { controllers: [Orders] })
    for (const id of ["o-1", "o-2"]) {
      const app = await microservice(root)
      await app.listen()
      await app.get(EventBusService).publish("orders", { value: id })
      await until(() => seen.includes(id))
      await app.close()
    }
    expect(seen).toEqual(["o-1", "o-2"])
  })

  it("two buses of one application: each has its handlers, its cluster and its service, and options may come from providers", async () => {
    const home = kafkaWith("orders")
    const away = kafkaWith("orders")
    const seen: Array<string> = []
    @Injectable()
    class Config {
      readonly kafka = away
    }
    @Module({ providers: [Config], exports: [Config] })
    class ConfigModule {}
    @Injectable()
    class Bridge {
      @InjectEventBus("away") readonly away!: EventBusService
      @KafkaHandler(orders)
      async atHome({ value }: KafkaDelivery<string>) {
        await this.away.publish("orders", { value: `${value} moved` })
      }
      @KafkaHandler({ ...orders, bus: "away" })
      onArrival({ value }: KafkaDelivery<string>) {
        seen.push(value)
      }
    }
    const awayModule = EventBusModule.forRootAsync({
      name: "away",
      imports: [ConfigModule],
      inject: [Config],
      useFactory: async ({ kafka }: Config) => ({ kafka, log: "off" as const })
    })
    const app = await startContext(rootOf(home, { imports: [awayModule], providers: [Bridge] }))
    await app.get(EventBusService).publish("orders", { value: "o-1" })
    await until(() => seen.length === 1)
    expect(seen).toEqual(["o-1 moved"])
  })

  it("a transport that comes when the bus runs already, or for another bus, says so", async () => {
    const app = await startContext(rootOf(kafkaWith("orders"), {}))
    const bus = app.get(EventBusService)
    expect(() => new EventBusTransport(bus, { groupId: "billing-server" })).toThrow("the bus runs already")
    expect(() => new EventBusTransport({ ...bus }, { groupId: "billing-server" })).toThrow("not one of EventBusModule")
  })
})

describe("RCH-07 health", () => {
  it("Terminus answers 503 while a consumer is paused, and says why; liveness stays 200", async () => {
    @Injectable()
    class Billing {
      @KafkaHandler({ ...orders, name: "billing" })
      onOrder() {}
    }
    @Controller("health")
    class HealthController {
      @Inject(HealthCheckService) readonly checks!: HealthCheckService
      @Inject(EventBusService) readonly bus!: EventBusService
      @Get("ready")
      @HttpCode(200)
      ready() {
        return this.checks.check([() => readiness("kafka", this.bus)])
      }
      @Get("live")
      live() {
        return this.checks.check([() => liveness("kafka", this.bus)])
      }
    }
    const root = rootOf(kafkaWith("orders"), {
      imports: [TerminusModule.forRoot({ logger: false })],
      providers: [Billing],
      controllers: [HealthController]
    })
    const app = closing(await NestFactory.create(root, quiet))
    await app.listen(0)
    const ask = async (path: string) => {
      const response = await fetch(`${await app.getUrl()}/health/${path}`.replace("[::1]", "localhost"))
      return { status: response.status, body: await response.json() }
    }
    const bus = app.get(EventBusService)
    await bus.ready()
    expect(await ask("ready")).toMatchObject({ status: 200, body: { info: { kafka: { status: "up", bus: "UP" } } } })
    await bus.pause("billing")
    expect(await ask("ready")).toMatchObject({
      status: 503,
      body: { error: { kafka: { status: "down", bus: "DEGRADED", reasons: [expect.stringContaining("billing")] } } }
    })
    expect(await ask("live")).toMatchObject({ status: 200 })
  })
})
