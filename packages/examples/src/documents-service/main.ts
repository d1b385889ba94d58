/**
 * The documents service: it registers a user, and the emails of that go their way. Health and metrics are at http://localhost:8080/actuator.
 *
 *   node packages/examples/src/documents-service/main.ts
 *   KAFKA_BROKERS=localhost:9092 node packages/examples/src/documents-service/main.ts
 *   KAFKA_BROKERS= node packages/examples/src/documents-service/main.ts      # without messaging
 */
import { createServer } from "node:http"
import { fileURLToPath } from "node:url"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { MessagingConfiguration } from "@eventbus/config"
import { BaseEvent, MessagingRoutes } from "@eventbus/messaging"
import { BigDecimal, Config, Console, DateTime, Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
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

/** A day of the service: somebody registers, uploads a document and pays. */
const day = Effect.gen(function* () {
  const user = { email: "ann@example.org", firstName: "Ann", lastName: "Lee" }
  const expiresAt = DateTime.addDuration(yield* DateTime.now, "1 day")
  const registered = { ...user, token: "t-1", expiresAt }
  yield* publishUserEvent(yield* BaseEvent.make(Events.userRegistered, registered, { eventSource: "Signup" }))
  yield* publishUserEvent(yield* BaseEvent.make(Events.welcome, user, { eventSource: "EmailVerification" }))
  yield* queueForOcr("doc-1", "u-1", "uploads/doc-1.pdf", "documents", "invoice.pdf", "application/pdf")
  yield* publishPaymentSucceeded("p-1", "pi_1", "STRIPE", "u-1", BigDecimal.fromStringUnsafe("19.99"), "EUR")
  const { success, topic, partition, offset } = yield* queueEmail("bob@example.invalid", "Hello", "welcome", {})
  yield* Console.log(`queued: ${success}, ${topic}-${partition}@${offset}`)
}).pipe(
  Effect.catchTag("NoBrokerRegistered", ({ message }) => Console.log(`Nothing is sent. ${message}`)),
  Effect.catchTag("MessagingException", ({ message }) => Console.log(message))
)

const Main = Layer.unwrap(
  Effect.map(MessagingConfiguration.load(file), (settings) => {
    const { bootstrapServers } = settings.kafka
    const cluster = clusterAt(bootstrapServers)
    const service = Layer.effectDiscard(day).pipe(
      Layer.provideMerge(consumers),
      Layer.provide([brokers(settings, cluster), mailServer])
    )
    if (bootstrapServers === undefined) return service
    const routes = HttpRouter.serve(MessagingRoutes.layer(), { disableListenLog: true }).pipe(Layer.provide(cluster))
    const server = NodeHttpServer.layerConfig(
      createServer,
      Config.all({ port: Config.Port("PORT").pipe(Config.withDefault(8080)) })
    )
    return Layer.merge(service, Layer.provide(routes, server))
  })
)

NodeRuntime.runMain(Layer.launch(Main))
