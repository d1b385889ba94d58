import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventbus, folderWith, program, start } from "./eventbus.ts"

const good = `eventbus:
  bindings:
    orders:
      topic: orders
      group-id: billing
      handler: charge
      retry: { tier0: { jitter: 0 }, tiers: [1m, { delay: 5m, max-attempts: 1 }] }
    payments: { topic: payments, group-id: billing, handler: charge, orderingMode: STRICT }
`
const bad = `eventbus:
  bindings:
    orders:
      topik: orders
      group-id: billing
      concurrency: 0
      ack-mode: "\${ACK}"
`

const runId = "6f1c2c1e-8a55-4a44-9c53-1f9a7d3f6b20"

const files = folderWith({
  "app.yaml": good,
  "app-big.yaml": "eventbus: { defaults: { concurrency: 4 } }\n",
  "bad.yaml": bad
})

describe("eventbus validate", () => {
  it.live("prints one line for a configuration without mistakes", () =>
    Effect.gen(function* () {
      const folder = yield* files
      assert.deepStrictEqual(yield* eventbus(folder, "validate", "app.yaml"), {
        code: 0,
        out: "app.yaml: no mistakes; 2 bindings, 0 clusters\n",
        err: ""
      })
    })
  )

  it.live("CFG-21 prints each mistake once on its own line, with its location; exit code 1", () =>
    Effect.gen(function* () {
      const folder = yield* files
      const { code, out, err } = yield* eventbus(folder, "validate", "bad.yaml")
      assert.deepStrictEqual([code, err], [1, ""])
      const lines = out.trimEnd().split("\n")
      assert.match(
        lines[0]!,
        /^bad\.yaml:4:7: eventbus\.bindings\.orders\.topik: found an unknown key, allowed is topic/
      )
      assert.match(
        lines[2]!,
        /^bad\.yaml:6:20: eventbus\.bindings\.orders\.concurrency: found 0, allowed is a whole number/
      )
      assert.match(lines[3]!, /^bad\.yaml:7:17: eventbus\.bindings\.orders\.ackMode: found .*ACK/)
      assert.strictEqual(lines.at(-1), "bad.yaml: 4 mistakes")
      assert.strictEqual(lines.length, 5)
    })
  )

  it.live("prints the same as JSON", () =>
    Effect.gen(function* () {
      const folder = yield* files
      const { code, out } = yield* eventbus(folder, "validate", "bad.yaml", "--json")
      const { valid, issues } = JSON.parse(out)
      assert.deepStrictEqual([code, valid, issues.length], [1, false, 4])
      assert.deepStrictEqual(issues[0], {
        path: "eventbus.bindings.orders.topik",
        found: "an unknown key",
        allowed: "topic (did you mean that?)",
        file: "bad.yaml",
        line: 4,
        column: 7
      })
    })
  )

  it.live("with --handlers: a missing handler is a mistake, and a module without handlers is refused", () =>
    Effect.gen(function* () {
      const folder = yield* folderWith({ "app.yaml": good.replace("handler: charge\n", "handler: chrage\n") })
      const missing = yield* eventbus(folder, "validate", "app.yaml", "--handlers", program("handlers"))
      assert.strictEqual(missing.code, 1)
      assert.match(missing.out, /bindings\.orders\.handler: found .*chrage.*charge/)
      assert.match(missing.out, /^app\.yaml:6:16: eventbus\.bindings\.orders\.handler: /)
      const nothing = yield* eventbus(folder, "validate", "app.yaml", "--handlers", program("nothing"))
      assert.strictEqual(nothing.code, 1)
      assert.match(nothing.err, /nothing\.ts has no handlers: it should export default Application\.make/)
      const absent = yield* eventbus(folder, "validate", "app.yaml", "--handlers", "absent.ts")
      assert.strictEqual(absent.code, 3)
      assert.match(absent.err, /^absent\.ts cannot be loaded: .*\n$/)
    })
  )
})

describe("mistakes of a file and of its handlers", () => {
  const both = folderWith({
    "app.yaml": good.replace("handler: charge\n", "handler: chrage\n").replace("STRICT", "STRIKT")
  })
  const told = [
    "app.yaml:6:16: eventbus.bindings.orders.handler",
    "app.yaml:8:84: eventbus.bindings.payments.orderingMode"
  ]

  for (const command of ["validate", "run"]) {
    it.live(`CFG-21 ${command} reports all at once, with their locations`, () =>
      Effect.gen(function* () {
        const folder = yield* both
        const { code, out, err } = yield* eventbus(folder, command, "app.yaml", "--handlers", program("handlers"))
        assert.strictEqual(code, 1)
        const lines = `${out}${err}`.trim().split("\n")
        assert.deepStrictEqual(
          lines
            .slice(0, -1)
            .map((line) => line.split(": found")[0])
            .toSorted(),
          told
        )
        assert.strictEqual(lines.at(-1), "app.yaml: 2 mistakes")
      })
    )
  }
})

describe("eventbus plan", () => {
  it.live("prints topics, consumers, times and memory of every binding", () =>
    Effect.gen(function* () {
      const folder = yield* files
      const { code, out, err } = yield* eventbus(folder, "plan", "app.yaml")
      assert.deepStrictEqual([code, err], [0, ""])
      assert.strictEqual(
        out.slice(0, out.indexOf("\n\n")),
        `orders on cluster default
  topics
    orders          source
    orders.retry-1  retry        1m  created when missing
    orders.retry-2  retry        5m  created when missing
    orders.DLT      dead-letter      created when missing
  consumers of a process
    billing  1 member  orders, orders.retry-1, orders.retry-2
    2 Kafka clients, consumers and producer
    at most 50 000 records or 16 MiB fetched and not handled, and one fetch each
  attempts of a record that always fails
    after  tier  delivery  attempts  topic
    0      0     1         3         orders
    1m     1     1         3         orders.retry-1
    2m 1s  1     2         3         orders.retry-1
    3m 1s  1     3         3         orders.retry-1
    8m 1s  2     1         3         orders.retry-2
    15 attempts in 5 deliveries; dead letter topic after 8m 2s
    43m when handlers take all of their time`
      )
      assert.include(out, "payments on cluster default")
    })
  )

  it.live("takes profiles and one binding, and prints the same as JSON", () =>
    Effect.gen(function* () {
      const folder = yield* files
      const { out } = yield* eventbus(folder, "plan", "app.yaml", "-p", "big", "--binding", "payments", "--json")
      const { plans } = JSON.parse(out)
      assert.strictEqual(plans.length, 1)
      assert.deepStrictEqual(plans[0].consumers, [{ groupId: "billing", topics: ["payments"], members: 4 }])
      assert.deepStrictEqual(plans[0].retries.exhausted, { earliestMillis: 240, latestMillis: 360 })
    })
  )

  it.live("prints mistakes to standard error, and nothing to standard output", () =>
    Effect.gen(function* () {
      const folder = yield* files
      const { code, out, err } = yield* eventbus(folder, "plan", "bad.yaml")
      assert.deepStrictEqual([code, out], [1, ""])
      assert.match(err, /bad\.yaml: 4 mistakes\n$/)
      const unknown = yield* eventbus(folder, "plan", "app.yaml", "--binding", "orderz")
      assert.deepStrictEqual(unknown, { code: 1, out: "", err: "no binding 'orderz'; the file has orders, payments\n" })
    })
  )

  it.live("an unnamed cluster is a mistake; an unreachable one gives exit code 3, and the plan is printed", () =>
    Effect.gen(function* () {
      const folder = yield* files
      const nowhere = yield* eventbus(folder, "plan", "app.yaml", "--check")
      assert.strictEqual(nowhere.code, 1)
      assert.match(nowhere.err, /binding 'orders' is on cluster 'default'.*eventbus\.clusters has none/)
      const away = yield* eventbus(folder, "plan", "app.yaml", "--binding", "orders", "--brokers", "127.0.0.1:1")
      assert.strictEqual(away.code, 3)
      assert.match(away.out, /orders on cluster default\n(.*\n)+ {2}on the cluster\n {4}error {2}\S/)
    })
  )
})

describe("eventbus", () => {
  it.live("a wrong command line gives one message and exit code 2", () =>
    Effect.gen(function* () {
      const folder = yield* files
      const hint = (command: string) => `${command} --help lists commands and flags\n`
      for (const [args, message] of [
        [["plan"], /^Missing required argument: file\n/],
        [["plan", "app.yaml", "--chek"], /^Unrecognized flag: --chek(.*\n)+.*--check/],
        [
          ["dlt", "show", "app.yaml", "orders", "-1@5"],
          /^an argument is a negative number; allowed is 0 or more, .* 3@17\n/
        ],
        [["trail", "app.yaml", "orders"], /^name the record by --key or by --at/],
        [["trail", "app.yaml", "orders", "--at", "1"], /^--at is "1"; allowed is partition@offset/],
        [
          ["dlt", "rehearse", "app.yaml", "orders"],
          /^name the dead letters by --group, --from, --to, --key, --at or --all/
        ],
        [["dlt", "rehearse", "app.yaml", "orders", "--at", "1"], /^--at is "1"; allowed is partition@offset/],
        [
          ["dlt", "rehearse", "app.yaml", "orders", "--all", "--key", "k"],
          /^--all is true; allowed is no 'all' beside keys/
        ],
        [["dlt", "rehearse", "app.yaml", "orders", "--group", "x"], /^--group is x; allowed is a fingerprint/],
        [
          ["dlt", "rehearse", "app.yaml", "orders", "--from", "yesterday"],
          /^--from is "yesterday"; allowed is ISO-8601/
        ],
        [["dlt", "plan", "app.yaml", "orders", "--all"], /^Missing required flag: --reason/],
        [["dlt", "plan", "app.yaml", "orders", "--reason", "x"], /^name the dead letters by --group/],
        [["dlt", "plan", "app.yaml", "orders", "--all", "--reason", " "], /^--reason is empty/],
        [
          ["dlt", "plan", "app.yaml", "orders", "--all", "--reason", "x", "--rate", "0"],
          /^--rate is 0; allowed is a whole/
        ],
        [
          ["dlt", "plan", "app.yaml", "orders", "--all", "--reason", "x", "--canary-wait", "soon"],
          /^--canary-wait is .*soon.*; allowed is a duration/
        ],
        [
          ["dlt", "plan", "app.yaml", "orders", "--all", "--reason", "x", "--action", "toTier"],
          /^--tier is .*; allowed is the number of a tier/
        ],
        [
          ["dlt", "plan", "app.yaml", "orders", "--all", "--reason", "x", "--action", "discard", "--rate", "5"],
          /^--rate is 5; allowed is nothing: discard makes no copies/
        ],
        [["dlt", "run", "app.yaml", "orders", "--all", "--reason", "x", "--stop-above", "101"], /^--stop-above is 101/],
        [["dlt", "discard", "app.yaml", "orders", "--reason", "x"], /^name the dead letters by --group/],
        ...(["plan", "run", "rehearse"] as const).map(
          (command) =>
            [
              [
                ...["dlt", command, "app.yaml", "orders", "--all", "--transform", "cap"],
                ...(command === "rehearse" ? [] : ["--reason", "x"])
              ],
              /^transform 'cap' is a function in the code of the binding: --handlers MODULE names the module that has it/
            ] as const
        ),
        [["dlt", "groups", "app.yaml"], /^found 1 arguments; allowed is file, binding/],
        [
          ["dlt", "purge", "app.yaml", "orders", "--older-than", "old"],
          /^--older-than is "old"; allowed is a duration/
        ],
        ...["7", "2999-01-01"].map(
          (older) =>
            [
              ["dlt", "purge", "app.yaml", "orders", "--older-than", older],
              /^--older-than is .*; allowed is a duration such as 7d, or a time in ISO-8601 that is not in the future/
            ] as const
        ),
        [["status"], /^Missing required flag: --url/],
        [["dlt", "restore", "app.yaml", "orders", "--all", "--reason", " "], /^--reason is empty/],
        [["dlt", "pause", "app.yaml", "orders", runId], /^Missing required flag: --reason/],
        [["dlt", "cancel", "app.yaml", "orders", runId, "--reason", " "], /^--reason is empty/],
        [
          ["dlt", "receipt", "app.yaml", "orders", "x", "--brokers", "127.0.0.1:1"],
          /^receipt: id is 'x', expected the id/
        ],
        [["dlt", "apply", "app.yaml", "orders", "x", "--brokers", "127.0.0.1:1"], /^apply: id is 'x', expected the id/],
        [
          ["dlt", "rate", "app.yaml", "orders", runId, "0", "--brokers", "127.0.0.1:1"],
          /^setRate: rate is 0, expected a whole number/
        ],
        [["dlt", "show", "app.yaml", "orders", "x"], /^the position is "x"; allowed is partition@offset/],
        [
          ["dlt", "groups", "app.yaml", "orders", "--state", "open"],
          /^--state is "open"; allowed is one or more of waiting/
        ],
        [["plan", "app.yaml", "--brokers", "localhost"], /^--brokers is "localhost"; allowed is host:port/],
        [
          ["plan", "app.yaml", "--transport", "librdkafka"],
          /--transport: "librdkafka"\. Expected: "kafkajs" \| "kafka"/
        ]
      ] as const) {
        const { code, out, err } = yield* eventbus(folder, ...args)
        assert.deepStrictEqual([code, out], [2, ""], args.join(" "))
        assert.match(err, message)
        if (message.source.startsWith("^Missing required arg")) assert.isTrue(err.endsWith(hint("eventbus plan")))
      }
    })
  )

  it.live("OPS-22 plans and runs need a cluster that answers: exit code 3", () =>
    Effect.gen(function* () {
      const folder = yield* files
      for (const [command, ...rest] of [["plan", "--all", "--reason", "x"], ["apply", runId], ["runs"]] as const) {
        const args = ["dlt", command, "app.yaml", "orders", ...rest, "--brokers", "127.0.0.1:1"]
        const { code, out } = yield* eventbus(folder, ...args)
        assert.deepStrictEqual([code, out], [3, ""], command)
      }
    })
  )

  it.live("help of every command has an example; completions are a script", () =>
    Effect.gen(function* () {
      const folder = yield* files
      for (const command of ["validate", "plan", "run", "trail"]) {
        const { code, out } = yield* eventbus(folder, command, "--help")
        assert.strictEqual(code, 0)
        assert.include(out, `eventbus ${command} app.yaml`)
      }
      for (const command of [
        ...["groups", "list", "show", "rehearse", "plan", "apply", "run", "discard", "restore", "purge"],
        ...["runs", "receipt", "pause", "resume", "cancel", "rate"]
      ]) {
        const { code, out } = yield* eventbus(folder, "dlt", command, "--help")
        assert.strictEqual(code, 0)
        assert.include(out, `eventbus dlt ${command} app.yaml`)
      }
      for (const command of ["status", "start", "stop", "pause", "resume"]) {
        const { code, out } = yield* eventbus(folder, command, "--help")
        assert.strictEqual(code, 0)
        assert.match(out, new RegExp(`eventbus ${command} .*--url http://localhost:8080`))
      }
      const { out: overview } = yield* eventbus(folder, "--help")
      const [, commands = ""] = overview.split("SUBCOMMANDS\n")
      assert.include(commands, "validate")
      assert.deepStrictEqual(
        commands.split("\n").filter((line) => line.length > 80),
        [],
        "a command is one line of a terminal"
      )
      const { out } = yield* eventbus(folder, "--completions", "bash")
      assert.match(out, /complete .*eventbus/)
    })
  )

  it.live("a reader that closes the pipe is not a failure", () =>
    Effect.gen(function* () {
      const folder = yield* files
      const running = start(folder, "plan", "app.yaml")
      running.process.stdout?.destroy()
      const { err } = yield* Effect.promise(() => running.ended)
      assert.notInclude(err, "EPIPE")
    })
  )
})
