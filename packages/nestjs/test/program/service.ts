/**
 * A Nest service as a user has it. `pnpm packages:check` compiles it to CommonJS, as `nest build` does, and runs it on the packed packages with the major version of Nest that
 * the workspace does not have. A failed assertion ends it with an error.
 */
import "reflect-metadata"
import * as assert from "node:assert/strict"
import { setTimeout } from "node:timers/promises"
import { EventBusModule, EventBusService, KafkaHandler, liveness, readiness } from "@eventbus/nestjs"
import { EventBusTransport } from "@eventbus/nestjs/transport"
import { deadLetter, type KafkaDelivery, on, Serde } from "@eventbus/node"
import { memoryKafka } from "@eventbus/node/testing"
import { Controller, Injectable, Module } from "@nestjs/common"
import { NestFactory } from "@nestjs/core"
import { Ctx, EventPattern, type KafkaContext, Payload } from "@nestjs/microservices"
import { HealthCheckService, TerminusModule } from "@nestjs/terminus"

class CardDeclined extends Error {}

@Injectable()
class Gateway {
  readonly steps: Array<string> = []

  async charge(id: string) {
    this.steps.push(`charging ${id}`)
    if (id === "declined") throw new CardDeclined("the bank said no")
    await setTimeout(300)
    this.steps.push(`charged ${id}`)
  }

  onModuleDestroy() {
    this.steps.push("destroyed")
  }
}

@Controller()
class Orders {
  readonly gateway: Gateway

  constructor(gateway: Gateway) {
    this.gateway = gateway
  }

  @EventPattern<string>("orders")
  async onOrder(@Payload() order: { readonly id: string }, @Ctx() context: KafkaContext) {
    assert.equal(context.getTopic(), "orders")
    await this.gateway.charge(order.id)
  }
}

@Injectable()
class Refunds {
  readonly gateway: Gateway

  constructor(gateway: Gateway) {
    this.gateway = gateway
  }

  @KafkaHandler({
    topic: "refunds",
    groupId: "refunds",
    value: Serde.string,
    onError: [on(CardDeclined, deadLetter())]
  })
  async onRefund({ value }: KafkaDelivery<string>) {
    await this.gateway.charge(value)
  }
}

const kafka = memoryKafka({ topics: { orders: 1, refunds: 1 } })

@Module({
  imports: [EventBusModule.forRoot({ kafka, log: "off" }), TerminusModule.forRoot({ logger: false })],
  controllers: [Orders],
  providers: [Gateway, Refunds]
})
class AppModule {}

const until = async (condition: () => boolean | Promise<boolean>) => {
  for (let round = 0; !(await condition()); round++) {
    assert.ok(round < 1_000, `not within ten seconds: ${condition}`)
    await setTimeout(10)
  }
}

const main = async () => {
  const app = await NestFactory.create(AppModule, { logger: false })
  const bus = app.get(EventBusService)
  const { steps } = app.get(Gateway)
  const health = (indicator: typeof readiness | typeof liveness) =>
    app
      .get(HealthCheckService)
      .check([() => indicator("kafka", bus)])
      .catch((error: { readonly response: { readonly status: string } }) => error.response)
  const consumer = { onError: [on(CardDeclined, deadLetter("declined"))] }
  app.connectMicroservice({ strategy: new EventBusTransport(bus, { groupId: "billing-server", consumer }) })
  await app.startAllMicroservices()
  assert.equal((await health(readiness)).status, "error")
  await app.listen(0)
  await bus.ready()
  assert.equal((await health(readiness)).status, "ok")

  await bus.publish("orders", { value: '{"id":"declined"}' })
  await bus.publish("refunds", { value: "declined" })
  await until(async () => (await kafka.records("orders.DLT")).length === 1)
  await until(async () => (await kafka.records("refunds.DLT")).length === 1)

  await bus.publish("orders", { value: '{"id":"o-1"}' })
  await until(() => steps.includes("charging o-1"))
  const closed = app.close()
  await until(async () => (await health(readiness)).status === "error")
  assert.equal((await health(liveness)).status, "ok")
  assert.ok(!steps.includes("charged o-1"), "health has answered while the handler runs")
  await closed
  assert.deepEqual(steps.slice(-3), ["charging o-1", "charged o-1", "destroyed"])
  assert.equal(await kafka.committed("billing-server", "orders", 0), 2n)
  await kafka.close()
  console.log(`the Nest service has run: ${steps.join(", ")}`)
}

main().catch((error: unknown) => {
  console.error(error)
  process.exit(1)
})
