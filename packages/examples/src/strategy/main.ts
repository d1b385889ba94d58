/**
 * The ten consumers at work. On the broker inside this process each topic gets a good event, and some get one that fails.
 *
 *   node packages/examples/src/strategy/main.ts
 *   KAFKA_BROKERS=localhost:9092 node packages/examples/src/strategy/main.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { IdempotencyStore } from "@eventbus/core"
import { Console, Effect, Layer } from "effect"
import * as Kafka from "../kafka.ts"
import * as Strategy from "./strategy.ts"
import { Invalid, Unavailable, Workers } from "./workers.ts"

const done = (group: string) => (event: object) => Console.log(`${group}: ${Object.values(event).join(" ")}`)

/** The chat of a customer that has blocked the sender, and a wallet that is on no list, fail for good. */
const workers = Layer.succeed(Workers, {
  "cg-deal-events": done("cg-deal-events"),
  "cg-deposit-watcher": done("cg-deposit-watcher"),
  "cg-payout-executor": (command) =>
    command.dealId === "d-404"
      ? Effect.fail(new Invalid({ problem: "no wallet is known" }))
      : done("cg-payout-executor")(command),
  "cg-deposit-handler": done("cg-deposit-handler"),
  "cg-auto-publisher": done("cg-auto-publisher"),
  "cg-delivery-verifier": done("cg-delivery-verifier"),
  "cg-delivery-handler": done("cg-delivery-handler"),
  "cg-notification-sender": (notification) =>
    notification.chatId === "blocked"
      ? Effect.fail(new Unavailable({ what: "the chat" }))
      : done("cg-notification-sender")(notification),
  "cg-deadline-handler": done("cg-deadline-handler"),
  "cg-reconciliation": () => Effect.fail(new Unavailable({ what: "the ledger" }))
})

const deal = { dealId: "d-1" }
const kafka = Kafka.topics({
  "deal.events": [["d-1", { eventId: "e-1", ...deal, type: "CREATED" }]],
  "escrow.commands": [
    ["d-1", { commandId: "c-1", ...deal, type: "PAYOUT", amount: "2500000000" }],
    ["d-404", { commandId: "c-2", dealId: "d-404", type: "REFUND", amount: "1" }],
    ["d-1", { commandId: "c-1", ...deal, type: "PAYOUT", amount: "2500000000" }]
  ],
  "escrow.confirmations": [["d-1", { commandId: "c-1", ...deal, type: "PAYOUT", transaction: "t-1" }]],
  "delivery.commands": [["d-1", '{"commandId":']],
  "delivery.results": [["d-1", { commandId: "c-3", ...deal, outcome: "LOST" }]],
  "notifications.outbox": [
    ["d-1", { notificationId: "n-1", chatId: "blocked", text: "Your payout is on its way" }],
    ["d-2", { notificationId: "n-2", chatId: "42", text: "Your payout has arrived" }]
  ],
  "deal.deadlines": [["d-1", { ...deal, step: "deposit", deadlineMillis: 1_900_000_000_000 }]],
  "reconciliation.triggers": [["all", { runId: "r-1" }]]
})

const Main = Strategy.layer.pipe(Layer.provide([workers, kafka, IdempotencyStore.layerMemory()]))

NodeRuntime.runMain(Layer.launch(Main))
