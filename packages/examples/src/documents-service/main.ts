/**
 * The documents service: it registers a user, and the emails of that go their way. Health and metrics are at http://localhost:8080/actuator.
 *
 *   node packages/examples/src/documents-service/main.ts
 *   KAFKA_BROKERS=localhost:9092 node packages/examples/src/documents-service/main.ts
 *   RABBITMQ=true KAFKA_BROKERS= node packages/examples/src/documents-service/main.ts   # on RabbitMQ
 *   KAFKA_BROKERS= node packages/examples/src/documents-service/main.ts      # without messaging
 */
import { createServer } from "node:http"
import { fileURLToPath } from "node:url"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { MessagingConfiguration } from "@eventbus/config"
import { BaseEvent, MessageBrokerFactory, type MessageResult, MessagingRoutes } from "@eventbus/messaging"
import { BigDecimal, Config, Console, DateTime, Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { brokers, clusterAt, consumers } from "./application.ts"
import { EmailNotSent, EmailOrchestrator } from "./emailOrchestrator.ts"
import * as Events from "./events.ts"
import { queueForOcr } from "./services/documentProcessingProducer.ts"
import { queueEmail } from "./services/emailMessageProducer.ts"
import { publishUserEvent } from "./services/eventPublisher.ts"
import { publishPaymentSucceeded } from "./services/paymentEventProducer.ts"

const file = fileURLToPath(new URL("application.properties", import.meta.url))

/** Prints emails. Addresses of `example.invalid` bounce. */
const mailServer = Layer.succeed(EmailOrchestrator, {
  sendEmail: ({ to, subject, templateName }) =>
    to.endsWith("@example.invalid")
      ? Effect.fail(new EmailNotSent({ to, reason: "the mail server refuses the address" }))
      : Console.log(`email to ${to}: ${subject} (${templateName})`)
})

/** Whether the broker keeps it, and where: Kafka names partition and offset, RabbitMQ the topic alone. */
const tell = (what: string, { success, topic, partition, offset, errorMessage }: MessageResult.MessageResult) => {
  const place = partition === undefined ? topic : `${topic}-${partition}@${offset}`
  return Console.log(success ? `${what} is queued: ${place}` : `${what} is not queued: ${errorMessage}`)
}

/** Health of the default broker, whichever that is: 503 when it is DOWN, or when there is none. */
const health = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const { getBroker } = yield* MessageBrokerFactory.MessageBrokerFactory
    const none = { status: "DOWN", details: {}, error: "no broker" } as const
    const asked = Effect.orElseSucceed(
      Effect.flatMap(getBroker(), (broker) => broker.health),
      () => none
    )
    const answer = Effect.map(asked, (found) =>
      HttpServerResponse.jsonUnsafe(found, { status: found.status === "UP" ? 200 : 503 })
    )
    yield* router.add("GET", "/actuator/health", answer)
  })
)

/** A day of the service: somebody registers, uploads a document and pays. */
const day = Effect.gen(function* () {
  const user = { email: "ann@example.org", firstName: "Ann", lastName: "Lee" }
  const expiresAt = DateTime.addDuration(yield* DateTime.now, "1 day")
  const registered = { ...user, token: "t-1", expiresAt }
  yield* publishUserEvent(yield* BaseEvent.make(Events.userRegistered, registered, { eventSource: "Signup" }))
  yield* publishUserEvent(yield* BaseEvent.make(Events.welcome, user, { eventSource: "EmailVerification" }))
  const price = BigDecimal.fromStringUnsafe("19.99")
  yield* tell(
    "the document",
    yield* queueForOcr("doc-1", "u-1", "uploads/doc-1.pdf", "documents", "invoice.pdf", "application/pdf")
  )
  yield* tell("the payment", yield* publishPaymentSucceeded("p-1", "pi_1", "STRIPE", "u-1", price, "EUR"))
  yield* tell("the email", yield* queueEmail("bob@example.invalid", "Hello", "welcome", {}))
}).pipe(
  Effect.catchTag("NoBrokerRegistered", ({ message }) => Console.log(`Nothing is sent. ${message}`)),
  Effect.catchTag("MessagingException", ({ message }) => Console.log(message))
)

const Main = Layer.unwrap(
  Effect.map(MessagingConfiguration.load(file), (settings) => {
    const { bootstrapServers } = settings.kafka
    const cluster = clusterAt(bootstrapServers)
    const registered = brokers(settings, cluster)
    const service = Layer.effectDiscard(day).pipe(
      Layer.provideMerge(consumers),
      Layer.provide([registered, mailServer])
    )
    const all = bootstrapServers === undefined ? health : Layer.merge(health, MessagingRoutes.layer())
    const routes = HttpRouter.serve(all, { disableListenLog: true }).pipe(Layer.provide([cluster, registered]))
    const server = NodeHttpServer.layerConfig(
      createServer,
      Config.all({ port: Config.Port("PORT").pipe(Config.withDefault(8080)) })
    )
    return Layer.merge(service, Layer.provide(routes, server))
  })
)

NodeRuntime.runMain(Layer.launch(Main))
