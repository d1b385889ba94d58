/** ADM-15: no answer has a secret in it, whatever the request and whatever fails. */
import { assert, describe, it } from "@effect/vitest"
import { AdminWeb, Authorizer, type OutboxPort } from "@eventbus/admin"
import { Configuration } from "@eventbus/config"
import { Binding, BrokerError, RetryPolicy } from "@eventbus/core"
import { FaultPlan } from "@eventbus/testkit"
import { Effect, Logger, Redacted, Schema } from "effect"
import { binding, callOf, eventually, start } from "./api.ts"
import * as OutboxOf from "./outboxOf.ts"

const canary = "canary-s3cr3t"
const token = `${canary}-token`

/** A handler's error that carries what belongs to a customer, as errors of services do. */
class CardDeclined extends Schema.TaggedError<CardDeclined>()("CardDeclined", { card: Schema.String }) {}

const authorizer = Authorizer.fromTokens([
  { token: Redacted.make(token), name: "operator", permissions: ["view", "operate", "replay", "discard", "admin"] }
])

const id = "6f1c2c1e-8a55-4a44-9c53-1f9a7d3f6b20"

const routes = [
  ["GET", "/eventbus/bindings"],
  ["GET", "/eventbus/bindings/orders"],
  ["GET", "/eventbus/bindings/halted"],
  ["GET", "/eventbus/bindings/halted/held"],
  ["POST", "/eventbus/bindings/halted/held/0@7/skip?reason=x"],
  ["POST", "/eventbus/bindings/halted/held/0@7/dead-letter?reason=x"],
  ["GET", "/eventbus/health"],
  ["GET", "/eventbus/audit"],
  ["GET", "/eventbus/openapi.json"],
  ["GET", "/eventbus/bindings/orders/dlt/stats"],
  ["GET", "/eventbus/bindings/orders/dlt/groups"],
  ["GET", "/eventbus/bindings/orders/dlt/records"],
  ["GET", `/eventbus/bindings/orders/dlt/records?text=${canary.slice(0, 6)}`],
  ["GET", "/eventbus/bindings/orders/dlt/records/0@0"],
  ["POST", "/eventbus/bindings/orders/dlt/rehearsals"],
  ["GET", "/eventbus/bindings/orders/dlt/rehearsals/none"],
  ["POST", "/eventbus/bindings/orders/dlt/plans"],
  ["GET", `/eventbus/bindings/orders/dlt/plans/${id}`],
  ["POST", `/eventbus/bindings/orders/dlt/plans/${id}/apply`],
  ["GET", "/eventbus/bindings/orders/dlt/runs"],
  ["GET", `/eventbus/bindings/orders/dlt/runs/${id}`],
  ["POST", `/eventbus/bindings/orders/dlt/runs/${id}/pause`],
  ["POST", `/eventbus/bindings/orders/dlt/runs/${id}/cancel`],
  ["POST", `/eventbus/bindings/orders/dlt/runs/${id}/resume`],
  ["POST", `/eventbus/bindings/orders/dlt/runs/${id}/rate`],
  ["GET", "/eventbus/outbox/permissions"],
  ["GET", "/eventbus/outbox/dead/groups"],
  ["GET", "/eventbus/outbox/dead/events"],
  ["GET", "/eventbus/outbox/dead/events/e-0"],
  ["GET", "/eventbus/outbox/dead/events/e-1"],
  ["POST", "/eventbus/outbox/dead/plans"],
  ["GET", "/eventbus/outbox/dead/plans/none"],
  ["POST", "/eventbus/outbox/dead/plans/none/apply"],
  ["GET", "/eventbus/outbox/dead/runs/none"],
  ["POST", "/eventbus/outbox/dead/runs/none/cancel"],
  ["POST", "/eventbus/outbox/dead/events/e-2/replay?reason=x"],
  ["POST", "/eventbus/outbox/dead/events/e-3/discard?reason=x"],
  ["GET", "/eventbus/nothing"],
  ["PUT", "/eventbus/bindings"],
  ["GET", "/health/live"],
  ["GET", "/health/ready"],
  ["GET", "/metrics"],
  ["POST", "/eventbus/bindings/orders/pause"],
  ["POST", "/eventbus/bindings/orders/resume"],
  ["POST", "/eventbus/bindings/orders/start"],
  ["POST", "/eventbus/bindings/orders/dlt/replay?count=1"],
  ["POST", "/eventbus/bindings/orders/dlt/replay?from=0&to=x"],
  ["POST", "/eventbus/bindings/orders/dlt/replay-to-tier?tier=9&count=1"],
  ["POST", "/eventbus/bindings"],
  ["DELETE", "/eventbus/bindings/orders/dlt?olderThan=x"],
  ["DELETE", "/eventbus/bindings/orders/dlt?olderThan=1ms"],
  ["POST", "/eventbus/bindings/orders/stop"],
  ["DELETE", "/eventbus/bindings/orders"]
] as const

/** A body of a POST, where there is one. */
const bodies: ReadonlyMap<string, object> = new Map<string, object>([
  ["/eventbus/bindings", { name: "x", topik: 1 }],
  ["/eventbus/bindings/orders/dlt/plans", { action: "replay", select: { all: true }, reason: "back again" }],
  ["/eventbus/outbox/dead/plans", { action: "discard", select: { aggregateId: canary }, reason: "a test" }],
  ["/eventbus/outbox/dead/runs/none/cancel", { reason: "wrong events" }]
])

describe("ADM-15 secrets", () => {
  it.live(
    "no answer and no log line of the API has the credential, a payload, an error's fields or a cluster's password",
    () =>
      Effect.gen(function* () {
        const lines: Array<string> = []
        const logger = Logger.make((line) => void lines.push(JSON.stringify([line.message, String(line.cause)])))
        const dead = yield* OutboxOf.make
        for (const eventId of ["e-0", "e-1", "e-2", "e-3"]) {
          yield* dead.die({
            ...{ eventId, aggregateId: canary, tenantId: canary, payload: { card: canary }, headers: { canary } },
            // As a class with a message, and as a text that somebody has thrown.
            error: eventId === "e-0" ? `CardDeclined: ${canary}` : canary
          })
        }
        let isDown = false
        const outbox: OutboxPort.OutboxPort["Service"] = {
          ...dead.outbox,
          groups: Effect.suspend(() =>
            isDown
              ? Effect.fail({ _tag: "OutboxStoreError", operation: "read dead events", message: canary } as const)
              : dead.outbox.groups
          )
        }
        const { context, append, memory } = yield* start({
          outbox,
          bindings: [
            binding("orders", { handler: () => Effect.die(new CardDeclined({ card: canary })) }),
            Binding.make("halted", {
              topic: "payments",
              groupId: "halting",
              retry: RetryPolicy.blocking({ maxAttempts: 1 }),
              orderingMode: "STRICT",
              onExhausted: "halt",
              handler: () => Effect.die(new CardDeclined({ card: canary }))
            })
          ]
        })
        const web = yield* AdminWeb.make({ authorizer, metrics: Effect.die(new Error(canary)) }).pipe(
          Effect.provideContext(context),
          Effect.provide(Logger.layer([logger]))
        )
        const call = callOf(web)
        yield* append("orders", `{"card":"${canary}"}`)
        yield* append("payments", `{"card":"${canary}"}`)
        const halted = call("GET", "/eventbus/bindings/halted", { token })
        const { body } = yield* eventually(halted, (answer) => answer.body.held.length === 1)
        assert.deepStrictEqual([body.held[0].offset, body.held[0].exceptionClass], ["0", "CardDeclined"])
        yield* eventually(call("GET", "/eventbus/bindings/orders", { token }), ({ body }) => body.metrics.routed === 1)

        const credentials = [token, `${token}x`, ""]
        const answers: Array<string> = []
        const callAll = Effect.gen(function* () {
          for (const credential of credentials)
            for (const [method, path] of routes) {
              const body = method === "POST" ? bodies.get(path) : undefined
              const { text, headers } = yield* call(method, path, { token: credential, body })
              answers.push(`${method} ${path} ${text} ${JSON.stringify([...headers])}`)
            }
        })
        yield* callAll
        isDown = true
        // The same while the cluster answers with an error that quotes what it was sent.
        const error = new BrokerError.AuthenticationFailed({ mechanism: "plain", detail: "refused" })
        yield* memory.addFault(FaultPlan.chance(1, { operation: "admin" }, { _tag: "Refuse", error }))
        yield* callAll

        assert.strictEqual(answers.length, 2 * 3 * routes.length)
        for (const answer of answers) assert.notInclude(answer, canary)
        const ofApi = lines.filter((line) => line.includes("Admin API"))
        assert.isAbove(ofApi.length, 3)
        for (const line of ofApi) assert.notInclude(line, canary)
      })
  )

  it.live("a body is not quoted where it may hold a secret: what is refused as a whole", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      for (const text of [`{"name": "${canary}`, `"${canary}`, `{"password": ${canary}}`]) {
        const answer = yield* call("POST", "/eventbus/bindings", { text })
        assert.strictEqual(answer.status, 400)
        assert.notInclude(answer.text, canary)
      }
    })
  )

  it.effect("SEC-01 clusters of a configuration keep their secrets redacted, and no route has them", () =>
    Effect.gen(function* () {
      const { clusters } = yield* Configuration.decode({
        eventbus: {
          clusters: {
            default: { brokers: ["k:9092"], ssl: true, sasl: { mechanism: "plain", username: "u", password: canary } }
          },
          bindings: { orders: { topic: "orders", groupId: "g" } }
        }
      })
      assert.notInclude(JSON.stringify(clusters), canary)
    })
  )
})
