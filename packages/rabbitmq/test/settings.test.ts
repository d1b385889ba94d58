import { type AddressInfo, createServer, type Server } from "node:net"
import { assert, it } from "@effect/vitest"
import { EventBusError } from "@eventbus/core"
import { RabbitMq } from "@eventbus/rabbitmq"
import { Duration, Effect, Redacted } from "effect"
import { describe } from "vitest"
import { onRabbitMq, reachable } from "./rabbit.ts"
import { reasonOf } from "./rig.ts"

describe("options of RabbitMQ", () => {
  it.effect("SEC-01 of another kind are refused together, with path and what is allowed, and without a secret", () =>
    Effect.gen(function* () {
      const wrong = {
        ...{ hosts: ["rabbit"], password: "hunter2", tls: { key: "hunter2" }, vhost: 1, heartbeat: "1500 millis" },
        ...{ prefetch: 0, deliveryLimit: 0.5, exchangePrefix: "amq.x", queuePrefix: "", retry: { maxAttempts: 0 } }
      } as unknown as RabbitMq.Options
      const defect = yield* Effect.flip(Effect.sandbox(Effect.scoped(RabbitMq.make(wrong))))
      const refused = defect.reasons.flatMap((reason) => (reason._tag === "Die" ? [reason.defect] : []))[0]
      assert.instanceOf(refused, EventBusError.ConfigurationValidation)
      const { issues } = refused as EventBusError.ConfigurationValidation
      assert.deepStrictEqual(
        issues.map(({ path }) => path),
        [
          ...["RabbitMq.hosts[0]", "RabbitMq.password", "RabbitMq.vhost", "RabbitMq.tls.key", "RabbitMq.heartbeat"],
          ...["RabbitMq.exchangePrefix", "RabbitMq.queuePrefix", "RabbitMq.prefetch", "RabbitMq.retry.maxAttempts"],
          "RabbitMq.deliveryLimit"
        ]
      )
      assert.notInclude(String(refused), "hunter2")
      assert.include(issues[4]?.allowed, "whole number of seconds")
    })
  )
})

const failureOf = (options: RabbitMq.Options) => Effect.flip(Effect.scoped(RabbitMq.make({ ...reachable, ...options })))

onRabbitMq("opening", () => {
  it.live("fails at once when the login or the virtual host is refused, and shows no password", () =>
    Effect.gen(function* () {
      const wrong = [{ password: Redacted.make("hunter2") }, { vhost: "no such host" }]
      for (const options of wrong) {
        const error = yield* failureOf(options)
        assert.strictEqual(reasonOf(error)[0], "LoginRefused", reasonOf(error)[1])
        assert.isFalse(error.retryable)
        assert.notInclude(JSON.stringify(error), "hunter2")
      }
    })
  )

  it.live("C52 goes to the next host when the first one accepts and says nothing", () =>
    Effect.gen(function* () {
      const silent = yield* Effect.acquireRelease(
        Effect.callback<Server>((resume) => {
          const server = createServer((socket) => socket.on("error", () => {}))
          server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
        }),
        (server) => Effect.sync(() => server.close())
      )
      const hosts = [`127.0.0.1:${(silent.address() as AddressInfo).port}`, ...(reachable.hosts ?? [])]
      const [elapsed, { status }] = yield* Effect.timed(
        Effect.scoped(Effect.flatMap(RabbitMq.make({ ...reachable, hosts }), ({ health }) => health))
      )
      assert.strictEqual(status, "UP")
      assert.isBelow(Duration.toMillis(elapsed), 4_000)
    }).pipe(Effect.scoped)
  )

  it.live("fails within its limit where nothing listens, and takes the next host where one does", () =>
    Effect.gen(function* () {
      const error = yield* failureOf({ hosts: ["127.0.0.1:1"], connectTimeout: "500 millis" })
      const [reason, text] = reasonOf(error)
      assert.strictEqual(reason, "Unreachable")
      assert.include(text, "RabbitMQ at 127.0.0.1:1 cannot be reached (connect ECONNREFUSED")
      const hosts = ["127.0.0.1:1", ...(reachable.hosts ?? [])]
      const broker = yield* Effect.scoped(
        Effect.flatMap(RabbitMq.make({ ...reachable, hosts }), ({ health }) => health)
      )
      assert.strictEqual(broker.status, "UP")
    })
  )
})
