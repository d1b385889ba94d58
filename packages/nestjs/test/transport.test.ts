/** Controllers of @nestjs/microservices on the connector. */
import { EventBusService } from "@eventbus/nestjs"
import { EventBusContext, type EventBusTransport } from "@eventbus/nestjs/transport"
import { deadLetter, EventBusError, on, skip, standardSchema } from "@eventbus/node"
import {
  type ArgumentsHost,
  type CanActivate,
  Catch,
  Controller,
  Injectable,
  NotFoundException,
  type PipeTransform,
  Scope,
  UseFilters,
  UseGuards
} from "@nestjs/common"
import {
  Ctx,
  EventPattern,
  type KafkaContext,
  MessagePattern,
  Payload,
  RpcException,
  Transport
} from "@nestjs/microservices"
import { concat, defer, EMPTY, from, of, throwError, timer } from "rxjs"
import { map } from "rxjs/operators"
import { describe, expect, it } from "vitest"
import { z } from "zod"
import { fast, kafkaWith, latch, microservice, reasonOf, rootOf, until } from "./app.ts"

class CardDeclined extends Error {}

const textOf = (bytes: Uint8Array | null | undefined) => (bytes ? new TextDecoder().decode(bytes) : undefined)

/** The classes of the errors of a consumer's dead letters. */
const classesOf = async (bus: EventBusService, consumer: string) => {
  const { letters } = await (await bus.deadLetters(consumer)).letters({ limit: 20 })
  return letters.map(({ exceptionClass }) => exceptionClass)
}

describe("RCH-07 the transport", () => {
  it("a controller written for Kafka of Nest gets payload, context, pipes and commits as there, and is retried and dead-lettered", async () => {
    const kafka = kafkaWith("orders")
    const seen: Array<unknown> = []
    @Injectable()
    class Upper implements PipeTransform {
      transform(order: { readonly id: string }) {
        return { ...order, id: order.id.toUpperCase() }
      }
    }
    @Controller()
    class Orders {
      calls = 0
      @EventPattern<string>("orders", Transport.KAFKA)
      async onOrder(@Payload(Upper) order: { readonly id: string }, @Ctx() context: KafkaContext) {
        this.calls += 1
        const { key, headers, offset, value } = context.getMessage()
        seen.push({ id: order.id, topic: context.getTopic(), partition: context.getPartition(), key, value, offset })
        seen.push(headers?.["source"])
        await context.getHeartbeat()()
        if (this.calls < 4) throw new Error("down")
        await context.getConsumer().commitOffsets([{ topic: context.getTopic(), partition: 0, offset }])
      }
    }
    const app = await microservice(rootOf(kafka, { controllers: [Orders] }), { consumer: fast })
    await app.listen()
    await app.get(EventBusService).publish("orders", { key: "ann", value: '{"id":"o-1"}', headers: { source: "shop" } })
    await until(() => seen.length === 8)
    const call = { id: "O-1", topic: "orders", partition: 0, key: "ann", value: { id: "o-1" }, offset: "0" }
    // Two in place, then in the retry topic, with the coordinates of the first topic.
    expect(seen).toEqual([call, "shop", call, "shop", call, "shop", call, "shop"])
    await until(async () => (await kafka.committed("billing-server", "orders", 0)) === 1n)
    expect(await kafka.records("orders.DLT")).toEqual([])
  })

  it("all handlers of a topic get each record and have ended before it is tried again; Observables run to their end", async () => {
    const kafka = kafkaWith("orders")
    const steps: Array<string> = []
    @Controller()
    class First {
      calls = 0
      @EventPattern<string>("orders")
      onOrder() {
        this.calls += 1
        steps.push(`first ${this.calls}`)
        if (this.calls === 1) throw new Error("down")
        return concat(of(1), timer(20).pipe(map(() => void steps.push("first ended"))))
      }
    }
    @Controller()
    class Second {
      @EventPattern<string>("orders")
      async onOrder() {
        await new Promise((resolve) => setTimeout(resolve, 20))
        steps.push("second ended")
      }
      @EventPattern<string>("refunds")
      onRefund() {
        return from([1, 2])
      }
    }
    await kafka.createTopic("refunds")
    const app = await microservice(rootOf(kafka, { controllers: [First, Second] }), { consumer: fast })
    await app.listen()
    const bus = app.get(EventBusService)
    await bus.publish("orders", { value: "o-1" })
    await bus.publish("refunds", { value: "r-1" })
    await until(async () => (await kafka.committed("billing-server", "orders", 0)) === 1n)
    await until(async () => (await kafka.committed("billing-server", "refunds", 0)) === 1n)
    expect(steps.slice(0, 3)).toEqual(["first 1", "second ended", "first 2"])
    expect(new Set(steps.slice(3))).toEqual(new Set(["first ended", "second ended"]))
  })

  it("rules by class see the error that was thrown, whatever the filters of Nest make of it; a filter that swallows it means handled", async () => {
    const kafka = kafkaWith("orders")
    @Catch(CardDeclined)
    class Replacing {
      catch() {
        return throwError(() => ({ status: "error", message: "replaced" }))
      }
    }
    @Catch()
    class Swallowing {
      catch(_error: unknown, _host: ArgumentsHost) {
        return EMPTY
      }
    }
    class Closed extends Error {}
    class Guard implements CanActivate {
      canActivate(): boolean {
        throw new Closed("guard")
      }
    }
    @Controller()
    class Orders {
      @EventPattern<string>("own")
      own() {
        throw new CardDeclined("own")
      }
      @EventPattern<string>("late")
      late() {
        return defer(() => throwError(() => new CardDeclined("late")))
      }
      @EventPattern<string>("replaced")
      @UseFilters(Replacing)
      async replaced() {
        throw new CardDeclined("replaced")
      }
      @EventPattern<string>("rpc")
      rpc() {
        throw new RpcException("rpc")
      }
      @EventPattern<string>("http")
      http() {
        throw new NotFoundException()
      }
      @EventPattern<string>("guarded")
      @UseGuards(Guard)
      guarded() {}
      @EventPattern<string>("swallowed")
      @UseFilters(Swallowing)
      swallowed() {
        throw new CardDeclined("swallowed")
      }
    }
    @Controller({ scope: Scope.REQUEST })
    class PerRequest {
      @EventPattern<string>("perRequest")
      onOrder() {
        throw new CardDeclined("per request")
      }
    }
    const topics = ["own", "late", "replaced", "rpc", "http", "guarded", "perRequest"]
    for (const topic of [...topics, "swallowed"]) await kafka.createTopic(topic)
    const rules = [CardDeclined, RpcException, NotFoundException, Closed].map((type) => on(type, deadLetter(type.name)))
    const app = await microservice(rootOf(kafka, { controllers: [Orders, PerRequest] }), {
      consumer: { onError: rules }
    })
    await app.listen()
    for (const topic of [...topics, "swallowed"]) await app.get(EventBusService).publish(topic, { value: "x" })
    await until(async () => (await kafka.committed("billing-server", "swallowed", 0)) === 1n)
    for (const topic of topics) await until(async () => (await kafka.records(`${topic}.DLT`)).length === 1)
    const classes = await Promise.all(topics.map((topic) => classesOf(app.get(EventBusService), topic)))
    expect(classes.flat()).toEqual([
      ...["CardDeclined", "CardDeclined", "CardDeclined", "RpcException", "NotFoundException", "Closed", "CardDeclined"]
    ])
    expect(await kafka.records("swallowed.DLT")).toEqual([])
  })

  it("the breaker of a topic opens, and its records wait in it", async () => {
    const kafka = kafkaWith("orders")
    @Controller()
    class Orders {
      calls = 0
      @EventPattern<string>("orders")
      async onOrder() {
        this.calls += 1
        throw new Error("down")
      }
    }
    const circuitBreaker = { minimumNumberOfCalls: 2, slidingWindowSize: 2, waitDurationInOpenState: "1h" }
    const app = await microservice(rootOf(kafka, { controllers: [Orders] }), {
      topics: { orders: { circuitBreaker, retry: { blocking: { maxAttempts: 1 }, tiers: [] } } }
    })
    await app.listen()
    const bus = app.get(EventBusService)
    await bus.publishAll(
      "orders",
      Array.from({ length: 10 }, (_, index) => ({ value: `o-${index}` }))
    )
    await until(() => bus.health().reasons.some(({ type }) => type === "BreakerOpen"))
    expect(app.get(Orders).calls).toBe(2)
    expect((await kafka.records("orders.DLT")).length).toBeLessThanOrEqual(2)
  })

  it("a topic with a serde of its own dead-letters what does not fit, and its controller gets what the schema makes of the rest", async () => {
    const kafka = kafkaWith("orders")
    const seen: Array<unknown> = []
    @Controller()
    class Orders {
      @EventPattern<string>("orders")
      onOrder(@Payload() order: unknown, @Ctx() context: EventBusContext) {
        seen.push(order, context.getSignal().aborted, context.getDelivery().tier)
      }
    }
    const value = standardSchema(z.object({ id: z.string() }))
    const app = await microservice(rootOf(kafka, { controllers: [Orders] }), { topics: { orders: { value } } })
    await app.listen()
    await app.get(EventBusService).publishAll("orders", [{ value: "no order" }, { value: '{"id":"o-1"}' }])
    await until(() => seen.length === 3)
    expect(seen).toEqual([{ id: "o-1" }, false, 0])
    await until(async () => (await kafka.records("orders.DLT")).length === 1)
  })

  it("getProducer().send publishes; every other member of consumer and producer says what there is", async () => {
    const kafka = kafkaWith("orders", "invoices")
    const errors: Array<string> = []
    @Controller()
    class Orders {
      @EventPattern("orders")
      async onOrder(@Ctx() context: KafkaContext) {
        await context.getProducer().send({ topic: "invoices", messages: [{ key: "ann", value: "i-1" }] })
        for (const call of [() => context.getConsumer().seek({ topic: "orders", partition: 0, offset: "0" })])
          try {
            call()
          } catch (error) {
            errors.push((error as Error).message)
          }
      }
    }
    const app = await microservice(rootOf(kafka, { controllers: [Orders] }))
    await app.listen()
    await app.get(EventBusService).publish("orders", { value: "o-1" })
    await until(async () => (await kafka.committed("billing-server", "orders", 0)) === 1n)
    expect((await kafka.records("invoices")).map(({ key, value }) => [textOf(key), textOf(value)])).toEqual([
      ["ann", "i-1"]
    ])
    expect(errors).toEqual([
      "getConsumer().seek: the connector has no such member here; it has commitOffsets. Inject EventBusService."
    ])
  })

  it("patterns that are no topic, requests, and topics that nobody handles are refused together; nothing runs", async () => {
    const kafka = kafkaWith("orders")
    @Controller()
    class Orders {
      @EventPattern(/orders\..*/)
      byExpression() {}
      @EventPattern<string>("orders.*")
      byWildcard() {}
      @EventPattern({ cmd: "order" })
      byObject() {}
      @MessagePattern("orders")
      reply() {
        return 1
      }
    }
    const app = await microservice(rootOf(kafka, { controllers: [Orders] }), {
      topics: { refunds: { onError: [on(Error, skip)] } }
    })
    const error = await reasonOf(app.listen())
    expect(error).toBeInstanceOf(EventBusError.ConfigurationValidation)
    const { issues } = error as EventBusError.ConfigurationValidation
    expect(issues.map(({ path, found }) => [path, found])).toEqual([
      ["@EventPattern(/orders\\..*/)", "a regular expression"],
      ['@EventPattern("orders.*")', "no name of a topic"],
      ['@EventPattern({"cmd":"order"})', "no name of a topic"],
      ['@MessagePattern("orders")', "a request that waits for a reply"],
      ["EventBusTransport.topics.refunds", "a topic without @EventPattern"]
    ])
    expect(app.get(EventBusService).health().status).toBe("DOWN")
  })

  it("RCH-11 with sharedConsumer one consumer reads all topics: handlers by pattern, also for retries; retry topics and dead letters by topic", async () => {
    const kafka = kafkaWith("orders", "refunds")
    const seen: Array<string> = []
    const note = (pattern: string, value: string, context: EventBusContext) => {
      const { tier } = context.getDelivery()
      seen.push(
        `${pattern} ${context.getTopic()}-${context.getPartition()}@${context.getMessage().offset} ${value} tier ${tier}`
      )
      if (value === "bad" || (value === "late" && tier === 0)) throw new Error(`${pattern} is down`)
    }
    @Controller()
    class Orders {
      @EventPattern<string>("refunds")
      onRefund(@Payload() value: string, @Ctx() context: EventBusContext) {
        note("refunds", value, context)
      }
      @EventPattern<string>("orders")
      onOrder(@Payload() value: string, @Ctx() context: EventBusContext) {
        note("orders", value, context)
      }
    }
    const app = await microservice(rootOf(kafka, { controllers: [Orders] }), {
      sharedConsumer: "billing",
      consumer: { retry: { blocking: { maxAttempts: 1 }, tiers: [{ delay: "10ms", maxAttempts: 1 }] } }
    })
    await app.listen()
    const bus = app.get(EventBusService)
    await bus.publishAll("orders", [{ value: "good" }, { value: "late" }])
    await bus.publishAll("refunds", [{ value: "late" }, { value: "bad" }])
    await until(async () => (await kafka.records("refunds.DLT")).length === 1)
    await until(() => seen.filter((each) => each.includes("late tier 1")).length === 2)
    expect(seen.toSorted()).toEqual([
      "orders orders-0@0 good tier 0",
      "orders orders-0@1 late tier 0",
      "orders orders-0@1 late tier 1",
      "refunds refunds-0@0 late tier 0",
      "refunds refunds-0@0 late tier 1",
      "refunds refunds-0@1 bad tier 0",
      "refunds refunds-0@1 bad tier 1"
    ])
    expect((await kafka.records("orders.retry-1")).length).toBe(1)
    expect((await kafka.records("refunds.retry-1")).length).toBe(2)
    expect(await kafka.records("orders.DLT")).toEqual([])
    const { letters } = await (await bus.deadLetters("billing", { topic: "refunds" })).letters({ limit: 20 })
    expect(letters.map(({ originalTopic, originalOffset }) => [originalTopic, originalOffset])).toEqual([
      ["refunds", 1n]
    ])
    // The binding is one: its first topic is the first by name, whatever order Nest finds the methods in.
    await until(async () => (await kafka.committed("billing-server", "orders", 0)) === 2n)
    await until(async () => (await kafka.committed("billing-server", "refunds", 0)) === 2n)
    expect((await bus.snapshot("billing")).topics).toEqual(["orders", "refunds"])
  })

  it("RCH-11 one consumer has one set of options: those of a single topic are refused, and a service of one topic is no list", async () => {
    const kafka = kafkaWith("orders")
    @Controller()
    class Orders {
      @EventPattern<string>("orders")
      onOrder() {}
    }
    const root = rootOf(kafka, { controllers: [Orders] })
    const both = await microservice(root, { sharedConsumer: "billing", topics: { orders: fast } })
    const error = await reasonOf(both.listen())
    expect((error as EventBusError.ConfigurationValidation).issues.map(({ path, found }) => [path, found])).toEqual([
      ["EventBusTransport.topics.orders", "options of one topic beside sharedConsumer"]
    ])
    const app = await microservice(rootOf(kafka, { controllers: [Orders] }), { sharedConsumer: "billing" })
    await app.listen()
    await app.get(EventBusService).publish("orders", { value: "o-1" })
    await until(async () => (await kafka.committed("billing-server", "orders", 0)) === 1n)
  })

  it("RCH-11 a record that somebody wrote into a retry topic without its headers reaches no handler, and is dead-lettered", async () => {
    const kafka = kafkaWith("orders", "refunds", "refunds.retry-1")
    const seen: Array<unknown> = []
    @Controller()
    class Orders {
      @EventPattern<string>("orders")
      onOrder() {
        seen.push("orders")
      }
      @EventPattern<string>("refunds")
      onRefund() {
        seen.push("refunds")
      }
    }
    const app = await microservice(rootOf(kafka, { controllers: [Orders] }), {
      sharedConsumer: "billing",
      consumer: { retry: { blocking: { maxAttempts: 1 }, tiers: ["10ms"] } }
    })
    await app.listen()
    await app.get(EventBusService).publish("refunds.retry-1", { value: "lost" })
    await until(async () => (await kafka.records("refunds.DLT")).length === 1)
    expect(seen).toEqual([])
    expect(await classesOf(app.get(EventBusService), "billing")).toEqual(["Error"])
  })

  it("hooks of an instrumentation run around each call", async () => {
    const kafka = kafkaWith("orders")
    const ended = latch()
    const steps: Array<string> = []
    @Controller()
    class Orders {
      @EventPattern<string>("orders")
      onOrder() {
        steps.push("handler")
      }
    }
    const app = await microservice(rootOf(kafka, { controllers: [Orders] }))
    const { serverInstance: server } = app as unknown as { readonly serverInstance: EventBusTransport }
    server.setOnProcessingStartHook((_, context, done) => {
      steps.push(`start ${context instanceof EventBusContext}`)
      void done()
    })
    server.setOnProcessingEndHook(() => {
      steps.push("end")
      ended.done()
    })
    await app.listen()
    await app.get(EventBusService).publish("orders", { value: "o-1" })
    await ended.opened
    expect(steps).toEqual(["start true", "handler", "end"])
  })
})
