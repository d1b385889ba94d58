import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { MessagingConfiguration } from "@eventbus/config"
import { Broker } from "@eventbus/core"
import { BaseEvent, type MessageBrokerFactory } from "@eventbus/messaging"
import { MemoryBroker, VirtualClock } from "@eventbus/testkit"
import { BigDecimal, DateTime, Effect, Layer } from "effect"
import { brokers, clusterAt, consumers } from "../src/documents-service/application.ts"
import { type EmailMessage, EmailNotSent, EmailOrchestrator } from "../src/documents-service/emailOrchestrator.ts"
import * as Events from "../src/documents-service/events.ts"
import * as EventTypes from "../src/documents-service/eventTypes.ts"
import * as DocumentProcessing from "../src/documents-service/messages/documentProcessing.ts"
import * as Email from "../src/documents-service/messages/email.ts"
import * as Payment from "../src/documents-service/messages/payment.ts"
import * as UserEvent from "../src/documents-service/messages/userEvent.ts"
import * as Documents from "../src/documents-service/services/documentProcessingProducer.ts"
import * as Emails from "../src/documents-service/services/emailMessageProducer.ts"
import * as Publish from "../src/documents-service/services/eventPublisher.ts"
import * as Payments from "../src/documents-service/services/paymentEventProducer.ts"
import * as TopicNames from "../src/documents-service/topicNames.ts"

const file = fileURLToPath(new URL("../src/documents-service/application.properties", import.meta.url))
const settings = (env: Readonly<Record<string, string>> = {}) =>
  Effect.orDie(MessagingConfiguration.load(file, { env }))

/** The mail server of a test: what it was given, and whom it refuses. */
const mailServer = (sent: Array<EmailMessage>) =>
  Layer.succeed(EmailOrchestrator, {
    sendEmail: (email) => {
      sent.push(email)
      return email.to === "bob@example.invalid"
        ? Effect.fail(new EmailNotSent({ to: email.to, reason: "no such address" }))
        : Effect.void
    }
  })

/** Runs a test in the service, on a Kafka in memory, in virtual time. */
const inService = <A, E>(
  sent: Array<EmailMessage>,
  test: Effect.Effect<A, E, MessageBrokerFactory.MessageBrokerFactory | MemoryBroker.MemoryBroker | Broker.Broker>
) =>
  Effect.gen(function* () {
    const { broker } = yield* MemoryBroker.MemoryBroker
    const cluster = Layer.succeed(Broker.Broker, broker)
    const service = consumers.pipe(
      Layer.provideMerge(brokers(yield* settings(), cluster)),
      Layer.provide(mailServer(sent))
    )
    return yield* Effect.provide(test, service)
  }).pipe(Effect.provide(Layer.provideMerge(MemoryBroker.layer(), VirtualClock.layer)))

const until = (condition: () => boolean) =>
  Effect.repeat(Effect.sleep(50), { until: condition, times: 2_000 }).pipe(
    Effect.andThen(Effect.sync(() => assert.isTrue(condition())))
  )

/** The records of a topic, as texts, and the partition that each is in. */
const recordsOf = Effect.fnUntraced(function* (topic: string) {
  const { log, partitionCount } = yield* MemoryBroker.MemoryBroker
  const partitions = Array.from({ length: yield* partitionCount(topic) }, (_, partition) => partition)
  const records = yield* Effect.forEach(partitions, (partition) => log(topic, partition))
  return records.flat().map(({ key, value, headers }) => ({
    key: key === null ? null : new TextDecoder().decode(key),
    value: JSON.parse(new TextDecoder().decode(value ?? undefined)),
    headers: new Map(headers.map((header) => [header.key, new TextDecoder().decode(header.value ?? undefined)]))
  }))
})

const ann = { email: "ann@example.org", firstName: "Ann" }
const document = ["doc-1", "u-1", "uploads/doc-1.pdf", "documents", "invoice.pdf", "application/pdf"] as const

describe("the topics of the documents service", () => {
  it.effect(
    "MSG-23 MSG-24 MSG-25 it has 28: missing ones are created with partitions and retention, others left alone",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic(TopicNames.TOPIC_USERS, { partitions: 5 })
        const cluster = Layer.succeed(Broker.Broker, memory.broker)
        yield* Layer.build(brokers(yield* settings(), cluster))
        const names = TopicNames.declarations.map(({ name }) => name)
        assert.strictEqual(new Set(names).size, 28)
        const counted = (suffix: RegExp) => names.filter((name) => suffix.test(name)).length
        assert.deepStrictEqual([counted(/-retry$/), counted(/-dlq$/)], [9, 9])
        const partitions = Object.fromEntries(
          yield* Effect.forEach(names, (name) => Effect.map(memory.partitionCount(name), (count) => [name, count]))
        )
        assert.strictEqual(partitions[TopicNames.TOPIC_USERS], 5)
        assert.strictEqual(partitions[TopicNames.TOPIC_DOCUMENTS], 6)
        assert.strictEqual(partitions[TopicNames.TOPIC_ELASTICSEARCH], 6)
        assert.strictEqual(partitions[TopicNames.TOPIC_EMAILS], 3)
        assert.strictEqual(partitions[TopicNames.TOPIC_EMAILS_RETRY], 1)
        const days = new Map(
          TopicNames.declarations.map(({ name, retentionMillis = 0 }) => [name, retentionMillis / 86_400_000])
        )
        assert.deepStrictEqual(
          [TopicNames.TOPIC_EMAILS, TopicNames.TOPIC_PAYMENTS, TopicNames.TOPIC_NOTIFICATIONS].map((name) =>
            days.get(name)
          ),
          [7, 30, 3]
        )
        assert.deepStrictEqual([days.get(TopicNames.TOPIC_OCR_RETRY), days.get(TopicNames.TOPIC_OCR_DLQ)], [1, 30])
      }).pipe(Effect.scoped, Effect.provide(MemoryBroker.layer()))
  )

  it.effect("MSG-16 without bootstrap servers it starts, and what sends says why it does not", () =>
    Effect.gen(function* () {
      const complete = yield* settings({ KAFKA_BROKERS: "" })
      assert.isUndefined(complete.kafka.bootstrapServers)
      const service = consumers.pipe(
        Layer.provideMerge(brokers(complete, clusterAt(complete.kafka.bootstrapServers))),
        Layer.provide(mailServer([]))
      )
      const error = yield* Effect.flip(Emails.queueEmail("ann@example.org", "Hello", "welcome", {})).pipe(
        Effect.provide(service)
      )
      assert.include(error.message, "bootstrap-servers")
    })
  )
})

describe("the messages of the documents service", () => {
  it.effect("MSG-33 an email has a priority, a time, and copies about a user or an event", () =>
    Effect.gen(function* () {
      const email = yield* Email.of("ann@example.org", "Hello", "welcome", { name: "Ann", unread: 3 })
      assert.deepInclude(email, { priority: "NORMAL", templateVariables: { name: "Ann", unread: 3 } })
      assert.strictEqual((yield* Email.highPriority("a", "b", "c", {})).priority, "HIGH")
      const copy = email.forUser("u-1").withCorrelationId("c-1")
      assert.deepInclude(copy, { userId: "u-1", correlationId: "c-1", requestedAt: email.requestedAt })
      assert.isUndefined(email.userId)
    })
  )

  it.effect("MSG-34 a job on a document has a type and a priority, and a copy with parameters", () =>
    Effect.gen(function* () {
      const ocr = yield* DocumentProcessing.forOcr(...document)
      assert.deepInclude(ocr, {
        documentId: "doc-1",
        s3Key: "uploads/doc-1.pdf",
        bucketName: "documents",
        metadata: {}
      })
      assert.deepInclude(ocr, { processingType: "OCR_EXTRACTION", priority: "NORMAL" })
      const text = yield* DocumentProcessing.forTextExtraction(...document)
      assert.deepInclude(text, { processingType: "TEXT_EXTRACTION", priority: "NORMAL" })
      assert.deepStrictEqual(ocr.withMetadata({ pages: "1-3" }).metadata, { pages: "1-3" })
      assert.deepStrictEqual(ocr.metadata, {})
    })
  )

  it.effect("MSG-35 MSG-36 a payment event has an exact amount, and a failure its reason", () =>
    Effect.gen(function* () {
      const amount = BigDecimal.fromStringUnsafe("0.10")
      const paid = yield* Payment.paymentSucceeded("p-1", "pi_1", "PAYPAL", "u-1", amount, "EUR")
      assert.deepInclude(paid, { eventType: "PAYMENT_SUCCEEDED", status: "succeeded", currency: "EUR" })
      assert.isTrue(BigDecimal.equals(paid.amount ?? BigDecimal.fromStringUnsafe("0"), amount))
      const failed = yield* Payment.paymentFailed("p-1", "pi_1", "STRIPE", "u-1", "card declined")
      assert.deepInclude(failed, { eventType: "PAYMENT_FAILED", status: "failed" })
      assert.deepStrictEqual([failed.amount, failed.metadata], [undefined, { failureReason: "card declined" }])
      const begun = yield* Payment.subscriptionCreated("p-1", "sub_1", "PAYSTACK", "u-1", "s-1", amount, "NGN")
      assert.deepInclude(begun, { eventType: "SUBSCRIPTION_CREATED", subscriptionId: "s-1", provider: "PAYSTACK" })
      assert.deepStrictEqual<ReadonlyArray<string>>(Payment.PaymentEventType.literals, [
        ...["PAYMENT_INITIATED", "PAYMENT_SUCCEEDED", "PAYMENT_FAILED", "PAYMENT_REFUNDED", "SUBSCRIPTION_CREATED"],
        ...["SUBSCRIPTION_RENEWED", "SUBSCRIPTION_CANCELLED", "SUBSCRIPTION_EXPIRED", "INVOICE_PAID", "INVOICE_FAILED"]
      ])
    })
  )

  it.effect("MSG-37 a user event has its type and its time, and a login where it came from", () =>
    Effect.gen(function* () {
      assert.deepInclude(yield* UserEvent.userRegistered("u-1", "ann@example.org"), { eventType: "USER_REGISTERED" })
      assert.deepInclude(yield* UserEvent.userVerified("u-1", "ann@example.org"), { eventType: "USER_VERIFIED" })
      const login = yield* UserEvent.loginEvent("u-1", "ann@example.org", "203.0.113.7", "curl/8")
      assert.deepInclude(login, {
        eventType: "USER_LOGIN",
        ipAddress: "203.0.113.7",
        userAgent: "curl/8",
        eventData: {}
      })
      assert.strictEqual(UserEvent.UserEventType.literals.length, 12)
    })
  )
})

describe("the producers of the documents service", () => {
  it.effect("MSG-38 emails are queued with their priority", () =>
    inService(
      [],
      Effect.gen(function* () {
        const request = ["ann@example.org", "Hello", "welcome", {}] as const
        const { success, topic, partition, offset } = yield* Emails.queueEmail(...request)
        assert.deepStrictEqual([success, topic, typeof partition, offset], [true, "unraveldocs-emails", "number", 0n])
        yield* Emails.queueHighPriorityEmail(...request)
        yield* Emails.queueEmailForUser(...request, "u-1")
        const queued = (yield* recordsOf(TopicNames.TOPIC_EMAILS)).map(({ value }) => [value.priority, value.userId])
        assert.sameDeepMembers(queued, [
          ["NORMAL", undefined],
          ["HIGH", undefined],
          ["NORMAL", "u-1"]
        ])
      })
    )
  )

  it.effect("MSG-39 MSG-40 jobs are keyed by document, and payments by user", () =>
    inService(
      [],
      Effect.gen(function* () {
        yield* Documents.queueForOcr(...document)
        yield* Documents.queueForTextExtraction(...document)
        yield* Documents.queueHighPriorityOcr(...document)
        const jobs = (yield* recordsOf(TopicNames.TOPIC_DOCUMENTS)).map(({ key, value }) => [
          key,
          value.processingType,
          value.priority
        ])
        assert.deepStrictEqual(jobs, [
          ["doc-1", "OCR_EXTRACTION", "NORMAL"],
          ["doc-1", "TEXT_EXTRACTION", "NORMAL"],
          ["doc-1", "OCR_EXTRACTION", "HIGH"]
        ])
        const amount = BigDecimal.fromStringUnsafe("19.99")
        yield* Payments.publishPaymentSucceeded("p-1", "pi_1", "STRIPE", "u-1", amount, "EUR")
        yield* Payments.publishPaymentFailed("p-2", "pi_2", "STRIPE", "u-1", "expired")
        yield* Payments.publishSubscriptionCreated("p-3", "pi_3", "STRIPE", "u-1", "s-1", amount, "EUR")
        const payments = (yield* recordsOf(TopicNames.TOPIC_PAYMENTS)).map(({ key, value }) => [
          key,
          value.eventType,
          value.amount
        ])
        assert.deepStrictEqual(payments, [
          ["u-1", "PAYMENT_SUCCEEDED", "19.99"],
          ["u-1", "PAYMENT_FAILED", undefined],
          ["u-1", "SUBSCRIPTION_CREATED", "19.99"]
        ])
      })
    )
  )

  it.effect(
    "MSG-27 MSG-29 MSG-30 each event goes to its topic, with its type in the header and its correlation id as key",
    () =>
      inService(
        [],
        Effect.gen(function* () {
          const about = { eventSource: "Test", correlationId: "c-1" }
          yield* Publish.publishUserEvent(yield* BaseEvent.make(Events.welcome, ann, about))
          yield* Publish.publishAdminEvent(yield* BaseEvent.make(Events.adminCreated, { ...ann, role: "owner" }, about))
          yield* Publish.publishOcrEvent(
            yield* BaseEvent.make(Events.ocrRequested, { documentId: "d-1", userId: "u-1" }, about)
          )
          const team = { teamId: "t-1", email: "ann@example.org", name: "Ann's team" }
          yield* Publish.publishTeamEvent(yield* BaseEvent.make(Events.teamCreated, team, about))
          const published = yield* Effect.forEach(
            [TopicNames.TOPIC_USERS, TopicNames.TOPIC_ADMIN_EVENTS, TopicNames.TOPIC_OCR, TopicNames.TOPIC_TEAM_EVENTS],
            recordsOf
          )
          const seen = published.map((records) => records.map(({ key, headers }) => [key, headers.get("event-type")]))
          assert.deepStrictEqual(seen, [
            [["c-1", EventTypes.WELCOME_EVENT]],
            [["c-1", EventTypes.ADMIN_CREATED]],
            [["c-1", EventTypes.OCR_REQUESTED]],
            [["c-1", EventTypes.TEAM_CREATED]]
          ])
          assert.deepStrictEqual(published[0]?.[0]?.value, ann)
        })
      )
  )
})

describe("the consumers of the documents service", () => {
  it.effect("MSG-31 an event about a user becomes an email; an unknown type is dead-lettered", () => {
    const sent: Array<EmailMessage> = []
    return inService(
      sent,
      Effect.gen(function* () {
        const expiresAt = yield* DateTime.now
        const about = { eventSource: "Signup" }
        const registered = { ...ann, lastName: "Lee", token: "t-1", expiresAt }
        yield* Publish.publishUserEvent(yield* BaseEvent.make(Events.userRegistered, registered, about))
        yield* Publish.publishUserEvent(yield* BaseEvent.make(Events.passwordChanged, ann, about))
        const memory = yield* MemoryBroker.MemoryBroker
        const bytes = (text: string) => new TextEncoder().encode(text)
        const headers = [{ key: "event-type", value: bytes("UserTeleported") }]
        yield* memory.append(TopicNames.TOPIC_USERS, 0, [{ key: bytes("k"), value: bytes("{}"), headers }])
        yield* until(() => sent.length === 2)
        assert.sameDeepMembers(
          sent.map(({ to, templateName, templateModel }) => [to, templateName, templateModel]),
          [
            ["ann@example.org", "email-verification", { firstName: "Ann", token: "t-1" }],
            ["ann@example.org", "password-changed", { firstName: "Ann" }]
          ]
        )
        yield* Effect.sleep("2 seconds")
        const letters = yield* recordsOf(TopicNames.TOPIC_USERS_DLQ)
        assert.deepStrictEqual(
          letters.map(({ value, headers: found }) => [value, found.get("event-type")]),
          [[{}, "UserTeleported"]]
        )
      })
    )
  })

  it.effect(
    "MSG-32 MSG-20 an email that bounces is tried three times, and is then a dead letter; others are sent meanwhile",
    () => {
      const sent: Array<EmailMessage> = []
      return inService(
        sent,
        Effect.gen(function* () {
          yield* Emails.queueEmail("bob@example.invalid", "Hello", "welcome", {})
          yield* Emails.queueEmail("ann@example.org", "Hello", "welcome", { unread: 3 })
          yield* until(() => sent.some(({ to }) => to === "ann@example.org"))
          yield* Effect.sleep("10 seconds")
          const model = { subject: "Hello", templateName: "welcome", templateModel: { unread: 3 } }
          assert.deepInclude(
            sent.find(({ to }) => to === "ann@example.org"),
            model
          )
          assert.strictEqual(sent.filter(({ to }) => to === "bob@example.invalid").length, 3)
          const [letter, ...others] = yield* recordsOf(TopicNames.TOPIC_EMAILS_DLQ)
          assert.isEmpty(others)
          assert.strictEqual(letter?.value.to, "bob@example.invalid")
          assert.strictEqual(letter?.headers.get("original-topic"), TopicNames.TOPIC_EMAILS)
          assert.include(letter?.headers.get("exception-class"), "EmailNotSent")
        })
      )
    }
  )
})
