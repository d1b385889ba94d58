/** The contract of messaging on RabbitMQ. */
import { MessageBroker } from "@eventbus/messaging"
import * as MessagingContract from "@eventbus/messaging/MessagingContract"
import { Context, Effect, Layer } from "effect"
import { texts } from "../src/internal/headers.ts"
import { letters, onRabbitMq, testBroker } from "./rabbit.ts"

const layer = Layer.effectContext(
  Effect.map(Effect.orDie(testBroker()), ({ broker, prefix }) =>
    Context.make(MessageBroker.MessageBroker, broker).pipe(
      Context.add(MessagingContract.DeadLetters, {
        of: (topic) =>
          Effect.map(letters(`${prefix}.${topic}-dlq`), (all) =>
            all.map(({ content, properties: { headers = {} } }) => ({ headers: texts(headers), body: content }))
          )
      })
    )
  )
)

onRabbitMq("MSG-10", () => MessagingContract.suite("messaging", { layer, capabilities: [] }))
