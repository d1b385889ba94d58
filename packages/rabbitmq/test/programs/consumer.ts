/** A consumer as a process that a test kills. The last act of its handler is a line in a file: only then is the message acknowledged. */
import { appendFileSync } from "node:fs"
import { MessageBroker, MessageConsumer } from "@eventbus/messaging"
import { RabbitMq } from "@eventbus/rabbitmq"
import { Effect, Layer, Redacted } from "effect"
import { numbers, taskOf } from "./task.ts"

const { host, username, password, vhost, prefix, journal } = taskOf(process.env["TASK"] ?? "{}")

const consumer = MessageConsumer.make({
  topics: [numbers],
  groupId: "killed",
  // Some are at work when the process is killed.
  handle: ({ payload: { number } }) =>
    Effect.andThen(
      number % 7 === 0 ? Effect.sleep("5 millis") : Effect.void,
      Effect.sync(() => appendFileSync(journal, `${number}\n`))
    )
})

const program = Effect.gen(function* () {
  const broker = yield* MessageBroker.MessageBroker
  yield* broker.consume(consumer, { onDeadLetter: () => {} })
  return yield* Effect.never
}).pipe(
  Effect.scoped,
  Effect.provide(
    Layer.orDie(
      RabbitMq.layer({
        hosts: [host],
        ...{ username, vhost, password: Redacted.make(password), exchangePrefix: prefix, queuePrefix: prefix }
      })
    )
  )
)

Effect.runFork(program)
