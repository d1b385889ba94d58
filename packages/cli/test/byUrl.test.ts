/** OPS-22: the commands by `--url` on a process in memory. They print what the same commands print straight on the cluster. */
import { assert, describe, it } from "@effect/vitest"
import { AdminWeb } from "@eventbus/admin"
import { Binding, LetterTransform, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Effect, Fiber, Logger } from "effect"
import { eventually, everything, Refused, start, token } from "../../admin/test/api.ts"
import { held, stranded } from "../../admin/test/parkedOrders.ts"
import * as DirectOperator from "../src/internal/dlt/directOperator.ts"
import { jsonText } from "../src/internal/text.ts"
import { withToken } from "./eventbus.ts"
import { served } from "./served.ts"

const why = ["--reason", "INC-1204"]
const text = (bytes: Uint8Array | null) => new TextDecoder().decode(bytes ?? new Uint8Array())

/** A process with these values dead-lettered; `heal` lets the handler take what comes from then on. */
const withLetters = Effect.fnUntraced(function* (...values: ReadonlyArray<string>) {
  let isBad = true
  const made = Binding.make("orders", {
    ...{ topic: "orders", groupId: "orders-group", value: Serde.string, retry: RetryPolicy.none },
    onError: { Refused: Route.deadLetter("refused") },
    handler: () => Effect.suspend(() => (isBad ? Effect.fail(new Refused()) : Effect.void)),
    transforms: {
      repair: ({ value }) =>
        text(value) === "lost"
          ? Effect.fail(new LetterTransform.Skip({ reason: "nobody knows it" }))
          : Effect.succeed({ value: `repaired ${text(value)}` })
    }
  })
  const lines: Array<string> = []
  const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
  const program = yield* start({ bindings: [made] })
  const web = yield* AdminWeb.make({ authorizer: everything }).pipe(
    Effect.provideContext(program.context),
    Effect.provide(Logger.layer([logger]))
  )
  yield* program.append("orders", ...values)
  yield* eventually(
    program.call("GET", "/eventbus/bindings/orders/dlt/stats"),
    ({ body }) => body.count === values.length
  )
  const url = yield* served(web)
  const run = (...args: ReadonlyArray<string>) => withToken(token, ...args, "--url", url)
  const dlt = (command: string, ...args: ReadonlyArray<string>) => run("dlt", command, "orders", ...args)
  const heal = Effect.sync(() => {
    isBad = false
  })
  const letters = yield* program.connector.deadLetters("orders")
  const runs = yield* program.connector.runs("orders")
  return { ...program, url, run, dlt, heal, lines, direct: DirectOperator.make(letters, runs) }
})

const planned = (out: string): string => JSON.parse(out).id

describe("eventbus --url", () => {
  it.live("OPS-22 status, pause and resume are about the process; its log has the reason", () =>
    Effect.gen(function* () {
      const { run, lines } = yield* withLetters("one")
      const up = yield* run("status")
      assert.deepStrictEqual([up.code, up.err], [0, ""])
      assert.match(
        up.out,
        /^UP: 1 binding\n(?:.*\n)*default:orders {2}RUNNING {2}since \S+ {2}lag 0\n {2}newest failure \S+ {2}orders-0@0 {2}Refused\n$/
      )
      const paused = yield* run("pause", "orders", "--reason", "the shop\nis full")
      assert.deepStrictEqual([paused.code, paused.err], [0, ""])
      assert.match(paused.out, /^default:orders {2}PAUSED \(operator\)/)
      assert.isTrue(
        lines.some((line) =>
          /^Admin API: pause of binding 'default:orders' by operator: done, because: the shop.*is full$/.test(line)
        )
      )
      const shown = JSON.parse((yield* run("status", "--json")).out)
      assert.strictEqual(shown.bindings[0].state, "PAUSED")
      assert.match((yield* run("resume", "orders", ...why)).out, /RUNNING/)
      assert.match((yield* run("stop", "orders", ...why)).out, /STOPPED {2}since \S+ {2}lag not known/)
      const twice = yield* run("pause", "orders", ...why)
      assert.deepStrictEqual([twice.code, twice.out], [1, ""])
      assert.include(twice.err, "STOPPED")
      assert.match((yield* run("start", "orders", ...why, "--json")).out, /"state": "RUNNING"/)
    })
  )

  it.live(
    "OPS-11 OPS-22 held lists the records that hold their partition, and skips or dead-letters exactly one of them",
    () =>
      Effect.gen(function* () {
        const handled: Array<string> = []
        const orders = Binding.make("orders", {
          ...{ topic: "orders", groupId: "orders-group", value: Serde.string, onError: { Refused: Route.pause } },
          handler: ({ value }) =>
            value === "good" ? Effect.sync(() => void handled.push(value)) : Effect.fail(new Refused())
        })
        const program = yield* start({ bindings: [orders] })
        const url = yield* served(program.web)
        const held = (...args: ReadonlyArray<string>) => withToken(token, "held", ...args, "--url", url)
        yield* program.append("orders", "one", "two", "good")
        const listed = yield* eventually(held("list", "orders"), ({ out }) => out.includes("0@0"))
        assert.match(listed.out, /^1 record waits for a decision\n0@0 {2}orders {2}record {2}since \S+ {2}Refused\n$/)
        const skipped = yield* held("skip", "orders", "0@0", ...why)
        assert.deepStrictEqual([skipped.code, skipped.err], [0, ""])
        yield* eventually(held("list", "orders", "--json"), ({ out }) => out.includes("0@1"))
        // Somebody else has decided about it meanwhile.
        const late = yield* held("skip", "orders", "0@0", ...why)
        assert.deepStrictEqual([late.code, late.out], [1, ""])
        assert.include(late.err, "is not held in this process; held: orders-0@1")
        const stored = yield* held("dead-letter", "orders", "0@1", ...why, "--topic", "orders", "--json")
        assert.deepStrictEqual([stored.code, JSON.parse(stored.out).key], [0, "default:orders"])
        const none = yield* eventually(held("list", "orders", "--json"), ({ out }) => JSON.parse(out).held.length === 0)
        assert.strictEqual(none.code, 0)
        yield* eventually(
          Effect.sync(() => handled.length),
          (count) => count === 1
        )
        for (const args of [
          ["0@0", "--reason", " "],
          ["7", ...why]
        ])
          assert.strictEqual((yield* held("skip", "orders", ...args)).code, 2)
      })
  )

  it.live("PKO-05 parked lists the parked keys, and retries or skips exactly one that is held", () =>
    Effect.gen(function* () {
      const program = yield* held()
      const url = yield* served(program.web)
      const parked = (...args: ReadonlyArray<string>) => withToken(token, "parked", ...args, "--url", url)
      const listed = yield* parked("list", "orders")
      assert.match(
        listed.out,
        /^1 key is parked: 1 held, 0 waiting, 0 draining\n0@0 {2}orders {2}held {2}customer-a {2}since \S+ +1 behind it {2}Closed: no account \S+\n$/
      )
      const unknown = yield* parked("skip", "orders", "0@7", ...why)
      assert.deepStrictEqual([unknown.code, unknown.out], [1, ""])
      assert.include(unknown.err, "No key of binding 'orders' is parked at orders-0@7")
      program.failing.clear()
      const retried = yield* parked("retry", "orders", "0@0", ...why)
      assert.deepStrictEqual([retried.code, retried.out], [0, "orders 0@0 is decided about: the process has begun\n"])
      const none = yield* eventually(parked("list", "orders", "--json"), ({ out }) => JSON.parse(out).keys.length === 0)
      assert.deepStrictEqual([none.code, program.handled], [0, ["b1", "a1", "a2"]])
      for (const args of [
        ["0@0", "--reason", " "],
        ["7", ...why]
      ])
        assert.strictEqual((yield* parked("skip", "orders", ...args)).code, 2)
    })
  )

  it.live(
    "PKO-05 parked accept-loss lets a partition run whose keys are stranded, where their number is as given",
    () =>
      Effect.gen(function* () {
        const { context, handled, memory } = yield* stranded()
        const url = yield* served(yield* Effect.provideContext(AdminWeb.make({ authorizer: everything }), context))
        const parked = (command: string, ...args: ReadonlyArray<string>) =>
          withToken(token, "parked", command, "orders", ...args, "--url", url)
        assert.match((yield* parked("list")).out, /^1 key is parked: 0 held, 0 waiting, 0 draining, 1 stranded\n0@0 /)
        const changed = yield* parked("accept-loss", "--keys", "2", ...why)
        assert.deepStrictEqual([changed.code, changed.out, handled], [1, "", []])
        assert.match(changed.err, /stranded/)
        const accepted = yield* parked("accept-loss", "--keys", "1", ...why)
        assert.deepStrictEqual([accepted.code, accepted.out], [0, "the loss of 1 stranded key is accepted\n"])
        yield* eventually(
          parked("list", "--json"),
          ({ out }) => JSON.parse(out).keys.length === 0 && handled.length > 0
        )
        assert.deepStrictEqual([handled, (yield* memory.log("orders.DLT", 0)).length], [["c1"], 1])
        assert.strictEqual((yield* parked("accept-loss", "--keys", "1", "--reason", " ")).code, 2)
      })
  )

  it.live("PKO-08 parked says of a binding that does not keep the order of each key that it parks none", () =>
    Effect.gen(function* () {
      const orders = Binding.make("orders", {
        ...{ topic: "orders", groupId: "billing", value: Serde.string, handler: () => Effect.void },
        retry: RetryPolicy.tiered({ tiers: ["1 hours"] })
      })
      const { context } = yield* start({ bindings: [orders] })
      const url = yield* served(yield* Effect.provideContext(AdminWeb.make({ authorizer: everything }), context))
      const parked = (...args: ReadonlyArray<string>) =>
        withToken(token, "parked", "list", "orders", ...args, "--url", url)
      const mode = JSON.parse((yield* parked("--json")).out).orderingMode
      assert.strictEqual((yield* parked()).out, `The binding parks no keys: its orderingMode is ${mode}\n`)
      assert.match(mode, /^RELAXED/)
    })
  )

  it.live("OPS-22 every answer about dead letters is that of the same command on the cluster", () =>
    Effect.gen(function* () {
      const { dlt, direct } = yield* withLetters("one", "lost")
      const same = Effect.fnUntraced(function* (
        command: ReadonlyArray<string>,
        answer: Effect.Effect<unknown, unknown>
      ) {
        const [name = "", ...args] = command
        const { code, out } = yield* dlt(name, ...args, "--json")
        assert.deepStrictEqual([code, JSON.parse(out)], [0, JSON.parse(jsonText(yield* answer))], name)
      })
      const plan = yield* direct.plan({ action: "replay", select: { all: true }, reason: "INC-1204", by: "ann" })
      const withoutTime = Effect.map(direct.groups(), ({ read: _, ...rest }) => rest)
      const { read: _, ...groups } = JSON.parse((yield* dlt("groups", "--json")).out)
      assert.deepStrictEqual(groups, JSON.parse(jsonText(yield* withoutTime)))
      yield* same(["list"], direct.page({ limit: 50 }))
      yield* same(["show", "0@1"], direct.letter({ partition: 0, offset: 1n }))
      yield* same(["runs"], direct.runs)
      assert.deepStrictEqual((yield* dlt("apply", plan.id, "--json")).code, 0)
      yield* same(["receipt", plan.id], direct.receipt(plan.id))
      yield* same(["list", "--limit", "1"], direct.page({ limit: 1 }))
    })
  )

  it.live("OPS-07 OPS-22 a plan shows everything that its run would do; an empty one is a no", () =>
    Effect.gen(function* () {
      const { dlt, call } = yield* withLetters("one", "two")
      const { code, out } = yield* dlt(
        "plan",
        "--all",
        "--canary-wait",
        "15s",
        "--rate",
        "7",
        "--transform",
        "repair",
        ...why
      )
      assert.strictEqual(code, 0)
      const rows = new Map(
        out.split("\n").map((line) => [line.trim().split(/ {2,}/)[0], line.trim().split(/ {2,}/)[1]])
      )
      assert.match(out, /^plan \S+: 2 dead letters would be replayed\n {2}2 to orders\n/)
      assert.deepStrictEqual(
        ["action", "selection", "reason", "transform", "rate", "canary", "stops", "sample"].map((row) => rows.get(row)),
        [
          ...["replay", "all", "INC-1204 (operator)", "repair", "7 a second at most"],
          "20 first; the others wait 15s at most for their fate",
          "when more than 5 % of the decided copies come back",
          "0@0, 0@1"
        ]
      )
      assert.match(rows.get("expires") ?? "", /^\d{4}-\d{2}-\d{2}T/)
      const empty = yield* dlt("plan", "--key", "nobody", ...why)
      assert.strictEqual(empty.code, 1)
      assert.match(empty.out, /^plan \S+: nothing is selected/)
      for (const command of ["run", "discard"]) {
        const nothing = yield* dlt(command, "--key", "nobody", ...why, "--json")
        assert.deepStrictEqual([nothing.code, nothing.out], [1, ""], command)
        assert.match(nothing.err, /nothing is selected/)
      }
      const body = { action: "replay", select: { keys: ["nobody"] }, reason: "x" }
      const made = yield* call("POST", "/eventbus/bindings/orders/dlt/plans", { body })
      assert.deepStrictEqual([made.status, made.body.count], [201, 0])
      const applied = yield* dlt("apply", made.body.id)
      assert.strictEqual(applied.code, 1)
      assert.include(applied.out, "0 of 0 dead letters dealt with")
    })
  )

  it.live("OPS-08 OPS-22 a run says on standard error how far it is, and its answer is one JSON value", () =>
    Effect.gen(function* () {
      const { dlt, heal } = yield* withLetters(..."abcdefgh")
      yield* heal
      const { code, out, err } = yield* dlt("run", "--all", "--rate", "1", "--canary", "0", ...why, "--json")
      assert.strictEqual(code, 0, err)
      const { id, dealtWith } = JSON.parse(out)
      assert.strictEqual(dealtWith, 8)
      const lines = err.split("\n").filter((line) => line.startsWith(`run ${id}`))
      assert.match(
        lines[0]!,
        /^run \S+ has begun; after an interruption: eventbus dlt resume orders --url http\S+ \S+$/
      )
      assert.match(lines[1]!, /^run \S+: [1-7] of 8 dead letters dealt with; copies: /)
      assert.strictEqual(new Set(lines).size, lines.length)
    })
  )

  it.live("OPS-03 OPS-04 list and show say what was done about a letter; groups name their times", () =>
    Effect.gen(function* () {
      const { dlt, heal } = yield* withLetters("one", "two", "three")
      yield* heal
      const replayed = JSON.parse((yield* dlt("run", "--at", "0@0", ...why, "--json")).out).id
      const discarded = JSON.parse((yield* dlt("discard", "--at", "0@1", ...why, "--json")).out).id
      const { out } = yield* dlt("list")
      const [third, second, first] = out.split("\n")
      assert.match(
        first!,
        new RegExp(`dealt-with.*  replayed \\S+ by operator in run ${replayed} copy orders-0@3: INC-1204$`)
      )
      assert.match(second!, new RegExp(`dealt-with.*  discarded \\S+ by operator in run ${discarded}: INC-1204$`))
      assert.match(third!, /waiting/)
      assert.notInclude(third!, "INC-1204")
      yield* dlt("restore", "--at", "0@1", "--reason", "no test at all")
      const shown = (yield* dlt("show", "0@1")).out
      assert.match(shown, /^dead letter 0@1 {2}waiting\n/)
      assert.match(shown, /\nhistory +discarded .*: INC-1204\nhistory +restored .*: no test at all\n/)
      assert.match((yield* dlt("groups")).out, /to deal with {2}oldest \S+Z {2}newest \S+Z/)
      const absent = yield* dlt("show", "0@99")
      assert.deepStrictEqual(absent, { code: 1, out: "", err: "the dead letter topic has no record at 0@99\n" })
    })
  )

  it.live("OPS-05 OPS-06 rehearse takes a transform, and says which letters would stay", () =>
    Effect.gen(function* () {
      const { dlt } = yield* withLetters("one", "lost")
      const { code, out } = yield* dlt("rehearse", "--all", "--transform", "repair")
      assert.strictEqual(code, 1)
      assert.match(out, /^2 dead letters: 1 can be decoded, 1 would stay as they are\n/)
      assert.include(out, "0@1: Transform 'repair' skips it: nobody knows it")
      const unknown = yield* dlt("rehearse", "--all", "--transform", "mend")
      assert.deepStrictEqual([unknown.code, unknown.out], [2, ""])
      assert.include(unknown.err, "mend")
    })
  )

  it.live("OPS-06 OPS-22 plan and rehearse show line by line what a transform changes, as often as --diff says", () =>
    Effect.gen(function* () {
      const { dlt } = yield* withLetters("one", "lost", "t\u001b[31mhree")
      const expected = [
        ...["0@0: repair changes value, headers", "  value", "    - one", "    + repaired one", "  headers"],
        ...["    … 14 lines stay as they are", "    + x-eventbus-transformed-by: repair"],
        ...["0@1 stays: Transform 'repair' skips it: nobody knows it"]
      ]
      const shown = (out: string) => {
        const lines = out.trimEnd().split("\n")
        const from = lines.findIndex((line) => line.startsWith("0@0: "))
        return from === -1 ? [] : lines.slice(from).filter((line) => !/^ {6}/.test(line))
      }
      for (const command of [["plan", ...why], ["rehearse"]]) {
        const { out } = yield* dlt(command[0]!, "--all", "--transform", "repair", "--diff", "2", ...command.slice(1))
        assert.deepStrictEqual(
          shown(out).map((line) => line.replace(/\d+ lines/, "14 lines")),
          expected
        )
        const none = yield* dlt(command[0]!, "--all", "--transform", "repair", "--diff", "0", ...command.slice(1))
        assert.deepStrictEqual(shown(none.out), [])
      }
      // Nothing of a record reaches the terminal as a command to it.
      const third = yield* dlt("rehearse", "--at", "0@2", "--transform", "repair")
      assert.include(third.out, "    + repaired t\\u001b[31mhree\n")
      const json = JSON.parse((yield* dlt("plan", "--at", "0@0", "--transform", "repair", ...why, "--json")).out)
      assert.deepStrictEqual(
        json.transformed.map(({ position, outcome }: Record<string, unknown>) => [position, outcome]),
        [["0@0", "copied"]]
      )
      assert.strictEqual((yield* dlt("plan", "--all", "--diff", "21", ...why)).code, 2)
    })
  )

  it.live("OPS-08 pause, resume, rate and cancel reach the process that works on a run", () =>
    Effect.gen(function* () {
      const { dlt } = yield* withLetters(..."abcdefgh")
      const id = planned(
        (yield* dlt("plan", "--all", "--rate", "1", "--canary", "0", "--stop-above", "100", ...why, "--json")).out
      )
      const working = yield* Effect.forkScoped(dlt("apply", id))
      yield* eventually(dlt("receipt", id, "--json"), ({ code }) => code === 0)
      const paused = yield* dlt("pause", id, "--reason", "the shop is full")
      assert.strictEqual(paused.code, 0)
      assert.match(
        paused.out,
        /is paused: the shop is full\n(?:.*\n)* {2}go on with it: eventbus dlt resume orders --url/
      )
      assert.strictEqual((yield* Fiber.join(working)).code, 1)
      const faster = yield* dlt("rate", id, "1000", "--json")
      assert.deepStrictEqual([faster.code, JSON.parse(faster.out).rate], [0, 1_000])
      assert.strictEqual((yield* dlt("resume", id)).code, 0)
      const over = yield* dlt("cancel", id, ...why)
      assert.deepStrictEqual([over.code, over.err], [1, `Nothing was done: run ${id} is done.\n`])
    })
  )

  it.live("OPS-22 purge deletes what is older, and asks for an age", () =>
    Effect.gen(function* () {
      const { dlt } = yield* withLetters("one", "two")
      assert.deepStrictEqual(yield* dlt("purge", "--older-than", "7d"), {
        code: 0,
        out: "0 dead letters deleted\n",
        err: ""
      })
      assert.deepStrictEqual(yield* dlt("purge", "--older-than", "0s", "--json"), {
        code: 0,
        out: `${JSON.stringify({ purged: 2 }, null, 2)}\n`,
        err: ""
      })
      const wrong = yield* dlt("purge", "--older-than", "old")
      assert.strictEqual(wrong.code, 2)
      assert.match(wrong.err, /^--older-than is "old"; allowed is a duration such as 7d/)
    })
  )

  it.live("OPS-22 a wrong credential is a no, a process that does not answer is exit code 3, a wrong line is 2", () =>
    Effect.gen(function* () {
      const { url, run, dlt } = yield* withLetters("one")
      const stranger = yield* withToken("another", "dlt", "groups", "orders", "--url", url)
      assert.deepStrictEqual([stranger.code, stranger.out], [1, ""])
      assert.match(stranger.err, /no valid credential.* EVENTBUS_TOKEN has another one\.\n$/)
      const nameless = yield* withToken("", "dlt", "groups", "orders", "--url", url)
      assert.match(nameless.err, /no valid credential.* EVENTBUS_TOKEN is not set\.\n$/)
      const nobody = yield* withToken(token, "status", "--url", "http://127.0.0.1:1")
      assert.deepStrictEqual([nobody.code, nobody.out], [3, ""])
      assert.match(nobody.err, /^http:\/\/127\.0\.0\.1:1 gives no answer of the admin API/)
      assert.notInclude(stranger.err + nobody.err, token)
      const unknown = yield* run("dlt", "groups", "orderz")
      assert.deepStrictEqual([unknown.code, unknown.out], [1, ""])
      assert.include(unknown.err, "orderz")
      for (const [args, message] of [
        [["dlt", "groups", "app.yaml", "orders"], /^found 2 arguments; allowed is binding, since --url names/],
        [["dlt", "groups", "orders", "--brokers", "a:1"], /^--brokers has no meaning beside --url/],
        [["dlt", "groups", "orders", "--transport", "kafka"], /^--transport has no meaning beside --url/],
        [["dlt", "show", "orders", "0@1", "--handlers", "x.ts"], /^--handlers has no meaning beside --url/],
        [["dlt", "plan", "orders", "--all", "--by", "ann", ...why], /^--by has no meaning beside --url/],
        [["pause", "orders"], /^Missing required flag: --reason/],
        [["pause", "orders", "--reason", " "], /^--reason is empty/]
      ] as const) {
        const wrong = yield* run(...args)
        assert.deepStrictEqual([wrong.code, wrong.out], [2, ""], args.join(" "))
        assert.match(wrong.err, message)
      }
      assert.match(
        (yield* withToken(token, "status", "--url", "localhost")).err,
        /^--url is "localhost"; allowed is http/
      )
      assert.strictEqual((yield* dlt("rate", "6f1c2c1e-8a55-4a44-9c53-1f9a7d3f6b20", "fast")).code, 2)
    })
  )
})
