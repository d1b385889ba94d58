/** Secrets: how they are read, and where they must not appear. */
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { KafkaClient, Secret } from "@eventbus/kafka-client"
import { Config, ConfigProvider, Effect, Fiber, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { failure } from "../../src/ClientFailure.ts"
import { brokerErrors } from "../../src/internal/connection/brokerErrors.ts"
import type { Options } from "../../src/internal/connection/options.ts"
import { makeSecrets } from "../../src/internal/connection/secrets.ts"
import { securedOptions } from "../../src/internal/connection/security.ts"
import { noTransport } from "../noTransport.ts"

const temporaryFile = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "secret-"))),
  (folder) => Effect.promise(() => rm(folder, { recursive: true }))
).pipe(Effect.map((folder) => join(folder, "password")))

const options: Options = {
  brokers: ["a:1"],
  ssl: { key: Redacted.make("PRIVATE-KEY"), passphrase: Redacted.make("OPEN-SESAME") },
  sasl: { mechanism: "plain", username: "app", password: Redacted.make("hunter2") }
}

describe("SEC-01 a secret", () => {
  it("does not appear when the options or the service are printed", () => {
    for (const value of [
      options,
      securedOptions(options, noTransport),
      KafkaClient.make({ name: "Test", transport: "kafkajs", open: noTransport }, options)
    ]) {
      for (const text of [JSON.stringify(value), inspect(value, { depth: 20, showHidden: true }), String(value)]) {
        for (const secret of ["hunter2", "PRIVATE-KEY", "OPEN-SESAME"]) assert.notInclude(text, secret)
      }
    }
  })

  it.effect("that begins like another one leaves nothing of the other one", () =>
    Effect.gen(function* () {
      const secrets = makeSecrets()
      for (const secret of ["svc", "svc-9f8a7"]) yield* secrets.read("it", Redacted.make(secret))
      assert.strictEqual(secrets.redact("svc-9f8a7 of svc"), "<redacted> of <redacted>")
    })
  )

  it.effect(
    "that nobody can read any more, or whose provider fails with something without text, is not available",
    () =>
      Effect.gen(function* () {
        const secrets = makeSecrets()
        const { proxy: revoked, revoke } = Proxy.revocable({}, {})
        revoke()
        const wiped = Redacted.make("hunter2")
        Redacted.wipeUnsafe(wiped)
        for (const secret of [Effect.fail(Object.create(null)), Effect.fail(revoked), Effect.die(revoked), wiped]) {
          const failed = yield* Effect.flip(secrets.read("the password", secret as never))
          assert.strictEqual(failed.type, "CREDENTIALS")
          assert.include(failed.detail, "the password")
        }
      })
  )

  it.effect("that was read is redacted from errors", () =>
    Effect.gen(function* () {
      const secrets = makeSecrets()
      for (const secret of ["hunter2", "PRIVATE-KEY"]) yield* secrets.read("it", Redacted.make(secret))
      const before = securedOptions(options, noTransport)
      const secured = { ...before, security: { ...before.security, redact: secrets.redact } }
      const error = brokerErrors(secured).of(failure("AUTHENTICATION", "hunter2 with PRIVATE-KEY was refused"), {
        operation: "connect"
      })
      for (const text of [error.message, String(error), JSON.stringify(error), inspect(error)]) {
        assert.notInclude(text, "hunter2")
        assert.notInclude(text, "PRIVATE-KEY")
      }
      assert.strictEqual(secrets.redact("hunter2 hunter2"), "<redacted> <redacted>")
    })
  )

  it.effect("is redacted after many rotations, and an empty one redacts nothing", () =>
    Effect.gen(function* () {
      const secrets = makeSecrets()
      for (let n = 0; n < 1000; n++) {
        yield* secrets.read("it", Redacted.make(`rotated-${n}.`))
        yield* secrets.read("it", Redacted.make("always"))
      }
      yield* secrets.read("it", Redacted.make(""))
      assert.strictEqual(
        secrets.redact("always rotated-999. rotated-990. free"),
        "<redacted> <redacted> <redacted> free"
      )
    })
  )
})

describe("Secret", () => {
  it.effect("fromFile reads the file each time, without the line break at its end", () =>
    Effect.gen(function* () {
      const path = yield* temporaryFile
      const secrets = makeSecrets()
      const read = secrets.read("the password", Secret.fromFile(path))
      yield* Effect.promise(() => writeFile(path, "old\r\n"))
      assert.strictEqual(yield* read, "old")
      yield* Effect.promise(() => writeFile(`${path}.new`, " new \n").then(() => rename(`${path}.new`, path)))
      assert.strictEqual(yield* read, " new ")
    })
  )

  it.effect("a missing file is a failure that names it", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Secret.fromFile("/nowhere/password"))
      assert.strictEqual(error.message, "the file '/nowhere/password' cannot be read (ENOENT)")
      const failed = yield* Effect.flip(makeSecrets().read("the password", Secret.fromFile("/nowhere/password")))
      const port = brokerErrors(securedOptions(options, noTransport)).of(failed, { operation: "connect" })
      assert.strictEqual(port._tag, "CredentialsUnavailable")
      assert.isTrue(port.retryable)
      assert.include(port.message, "the password: the file '/nowhere/password' cannot be read (ENOENT)")
    })
  )

  it.effect("a Config reads an environment variable", () =>
    Effect.gen(function* () {
      const secret: Secret.Secret = Config.Redacted("KAFKA_PASSWORD")
      assert.strictEqual(yield* makeSecrets().read("the password", secret), "from-env")
    }).pipe(
      Effect.provideService(
        ConfigProvider.ConfigProvider,
        ConfigProvider.fromEnv({ env: { KAFKA_PASSWORD: "from-env" } })
      )
    )
  )

  it.effect("a provider that dies or takes more than 10 seconds is a failure", () =>
    Effect.gen(function* () {
      const { read } = makeSecrets()
      const died = yield* Effect.flip(read("the password", Effect.die(new Error("vault sealed"))))
      assert.strictEqual(died.detail, "the password: vault sealed")
      const waiting = yield* Effect.forkChild(Effect.flip(read("the password", Effect.never)))
      yield* TestClock.adjust("9999 millis")
      assert.isUndefined(waiting.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.strictEqual((yield* Fiber.join(waiting)).detail, "the password: not there within 10000 ms")
    })
  )

  for (const [name, resisting] of Object.entries({
    "is uninterruptible": Effect.uninterruptible(Effect.never),
    "hangs in its acquisition": Effect.scoped(Effect.acquireRelease(Effect.never, () => Effect.void))
  }))
    it.effect(`ruling 86: a provider that ${name} is a failure a second after its 10 seconds`, () =>
      Effect.gen(function* () {
        const { runBounded } = makeSecrets()
        const waiting = yield* Effect.forkChild(Effect.flip(runBounded("the bearer token", resisting)))
        yield* TestClock.adjust("11 seconds")
        assert.strictEqual((yield* Fiber.join(waiting)).detail, "the bearer token: not there within 10000 ms")
      })
    )

  it.effect("SEC-01 a provider that gives no secret is a failure, which does not show what it gave", () =>
    Effect.gen(function* () {
      const given: ReadonlyArray<readonly [given: unknown, shown: string]> = [
        ["hunter2", "string"],
        [undefined, "undefined"],
        [{ password: "hunter2" }, "a plain object"],
        [Redacted.make(undefined), "a plain object"]
      ]
      for (const [value, shown] of given) {
        const provider = Effect.succeed(value) as unknown as Secret.Secret
        const failed = yield* Effect.flip(makeSecrets().read("the password", provider))
        assert.strictEqual(failed.type, "CREDENTIALS")
        assert.strictEqual(
          failed.detail,
          `the password: ${shown} was given, and a Redacted with a text in it is expected`
        )
      }
    })
  )
})
