import { assert, describe, it } from "@effect/vitest"
import { Console, Effect, Logger } from "effect"
import { loggers } from "../src/internal/logFormats.ts"
import { eventbus, folderWith } from "./eventbus.ts"

/** The text that the loggers write for some records of a handler. */
const written = (form: keyof typeof loggers) =>
  Effect.gen(function* () {
    const texts: Array<string> = []
    const write = (...parts: ReadonlyArray<unknown>) => void texts.push(parts.join(" "))
    const console = { ...globalThis.console, log: write, error: write, group: write, groupEnd: () => {} }
    const record = { cluster: "default", bindingName: "orders", topic: "orders", partition: 3, offset: 14_209n }
    yield* Effect.logInfo("first\nsecond").pipe(
      Effect.andThen(Effect.logWarning("failed", new Error("down"))),
      Effect.andThen(Effect.sandbox(Effect.die(new Error("broken")))),
      Effect.catch((cause) => Effect.logError("gave up", cause)),
      Effect.annotateLogs({ ...record, consumerGroup: "billing", consumerInstance: "host-0", retryTier: 0, millis: 5 }),
      Effect.provide(Logger.layer([loggers[form]])),
      Effect.provideService(Console.Console, console)
    )
    return texts
  })

describe("the log of eventbus run", () => {
  it.effect("OPS-23 text has one line a record: time, level, coordinates, message, annotations and stack", () =>
    Effect.gen(function* () {
      const [info, warning, error, ...more] = yield* written("text")
      assert.deepStrictEqual(more, [])
      for (const line of [info, warning, error]) assert.notInclude(line, "\n")
      assert.strictEqual(
        info,
        "1970-01-01T00:00:00.000Z INFO [orders|orders|3|14209|billing|host-0] first\\u000asecond millis=5"
      )
      assert.match(warning!, /^1970-01-01T00:00:00\.000Z WARN \[orders\|orders\|3\|14209\|billing\|host-0\] failed /)
      assert.match(error!, / gave up millis=5\\nError: broken\\n {4}at /)
    })
  )

  it.effect("OPS-23 json has one line a record, with numbers and the stack", () =>
    Effect.gen(function* () {
      const texts = yield* written("json")
      for (const line of texts) assert.notInclude(line, "\n")
      const [info, , error] = texts.map((line) => JSON.parse(line))
      assert.strictEqual(texts.length, 3)
      assert.deepInclude(info, {
        level: "INFO",
        message: "first\nsecond",
        topic: "orders",
        partition: 3,
        offset: 14_209
      })
      assert.match(error.cause, /^Error: broken\n/)
    })
  )

  it.effect("pretty has several lines a record", () =>
    Effect.map(written("pretty"), (texts) => assert.isAbove(texts.length, 3))
  )

  it.live("an unknown form and the former flag are refused with the forms that there are", () =>
    Effect.gen(function* () {
      const folder = yield* folderWith({
        "app.yaml": "eventbus: { bindings: {} }",
        "handlers.js": "export const handlers = {}"
      })
      const run = ["run", "app.yaml", "--handlers", "handlers.js"]
      const former = yield* eventbus(folder, ...run, "--log-format", "json")
      assert.deepStrictEqual(former, {
        code: 2,
        out: "",
        err: "--log-format was renamed: use --log text, json or pretty\n"
      })
      const unknown = yield* eventbus(folder, ...run, "--log", "xml")
      assert.strictEqual(unknown.code, 2)
      assert.match(unknown.err, /text.*json.*pretty/)
      assert.notInclude((yield* eventbus(folder, "run", "--help")).out, "log-format")
    })
  )
})
