/** OPS-22: the fleet from the command line, by `--url` on processes in memory. */
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { eventually, start, token } from "../../admin/test/api.ts"
import { eventbus, folderWith } from "./eventbus.ts"

const why = ["--reason", "INC-1204"]

/** Two processes of a fleet, and the command with the address of the first. */
const two = Effect.gen(function* () {
  const one = yield* start({ fleet: { version: "1.4.2" } })
  const other = yield* start({ fleet: { version: "1.5.0" }, memory: one.memory })
  const server = yield* Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const listening = createServer(one.web.nodeListener).listen(0, "127.0.0.1", () =>
        resume(Effect.succeed(listening))
      )
    }),
    (listening) => Effect.sync(() => void listening.close().closeAllConnections())
  )
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const run = (...args: ReadonlyArray<string>) =>
    Effect.provideService(
      eventbus("/nowhere", ...args, "--url", url),
      ConfigProvider.ConfigProvider,
      ConfigProvider.fromUnknown({ EVENTBUS_TOKEN: token })
    )
  yield* eventually(
    one.call("GET", "/eventbus/fleet"),
    ({ body }) =>
      body.processes.filter(({ bindings }: { bindings: ReadonlyArray<unknown> }) => bindings.length > 0).length === 2
  )
  return { one, other, run }
})

describe("eventbus --fleet --url", () => {
  it.live("OPS-22 pause and resume are for all processes; fleet shows who holds and who has released", () =>
    Effect.gen(function* () {
      const { other, run } = yield* two
      const held = yield* run(
        "pause",
        "orders",
        "--fleet",
        "--reason",
        "the shop\nis full",
        "--until",
        "2100-01-01T00:00Z"
      )
      assert.deepStrictEqual([held.code, held.err], [0, ""])
      assert.strictEqual(
        held.out,
        "default:orders of group orders-group is held in the whole fleet until 2100-01-01T00:00:00.000Z\n2 of 2 processes answered\n"
      )
      assert.deepStrictEqual((yield* other.connector.snapshot("orders")).pausedBy, ["fleet"])
      assert.match(
        (yield* run("status")).out,
        /\ndefault:orders {2}PAUSED \(fleet\) .* held by operator: the shop.*is full\n$/
      )
      const shown = yield* run("fleet")
      assert.deepStrictEqual([shown.code, shown.err], [0, ""])
      assert.match(shown.out, /^2 processes, 0 stale: 1 of 1\.\d\.\d, 1 of 1\.\d\.\d\n/)
      assert.match(
        shown.out,
        /\nheld: default:orders of group orders-group by operator since \S+ until 2100\S+: the shop.*is full\n$/
      )
      const { holds, processes } = JSON.parse((yield* run("fleet", "--json")).out)
      assert.deepStrictEqual([holds.length, processes.length], [1, 2])
      assert.match(
        (yield* run("resume", "orders", "--fleet", ...why)).out,
        / is released\n2 of 2 processes answered\n$/
      )
      assert.strictEqual(yield* other.connector.getState("orders"), "RUNNING")
      assert.match(
        (yield* run("fleet")).out,
        /\nreleased: default:orders .* by operator at \S+: INC-1204 \(held by operator: the shop/
      )
      assert.match((yield* run("resume", "orders", "--fleet", ...why)).out, / was not held\n/)
    })
  )

  it.live("OPS-14 OPS-22 exit code 4 names the process that has not answered", () =>
    Effect.gen(function* () {
      const { one, run } = yield* two
      const bytes = (text: string) => new TextEncoder().encode(text)
      const beat = { v: 1, minV: 1, host: "b", pid: 7, version: "1", configHash: "0", sentAt: Date.now() }
      const value = bytes(JSON.stringify({ ...beat, control: "known", bindings: [], omitted: 1 }))
      yield* Effect.scoped(
        Effect.flatMap(one.memory.broker.producer(), (producer) =>
          producer.send({ topic: "__eventbus.fleet", partition: 0, key: bytes("process/silent"), value })
        )
      )
      const stopped = yield* run("stop", "orders", "--fleet", ...why)
      assert.deepStrictEqual([stopped.code, stopped.err], [4, "no answer: b, pid 7 (silent)\n"])
      assert.match(stopped.out, / is told to stop \(command, without a hold\)\n2 of 3 processes answered\n$/)
    })
  )

  it.live("OPS-22 without a fleet the answer is no; a command line that says too little or too much is wrong", () =>
    Effect.gen(function* () {
      const { run } = yield* two
      const folder = yield* folderWith({
        "app.yaml": "eventbus:\n  bindings:\n    orders:\n      topic: orders\n      groupId: billing\n"
      })
      const none = yield* eventbus(folder, "pause", "app.yaml", "orders", "--fleet", ...why, "--brokers", "127.0.0.1:1")
      assert.strictEqual(none.code, 1)
      assert.match(none.err, /app\.yaml has no eventbus\.fleet/)
      for (const [args, message] of [
        [["pause", "app.yaml", "orders", ...why], /^--url names the process; --fleet is for all of them/],
        [["pause", "orders", "--fleet", ...why], /^found 1 arguments; allowed is file, binding/],
        [["pause", "app.yaml", "orders", "--fleet", "--reason", " "], /^--reason is empty/],
        [["pause", "app.yaml", "orders", "--fleet", ...why, "--until", "noon"], /^--until is no time/],
        [["fleet"], /^name the configuration, or a running process by --url, and not both/]
      ] as const) {
        const { code, err } = yield* eventbus(folder, ...args)
        assert.strictEqual(code, 2, args.join(" "))
        assert.match(err, message)
      }
      const alone = yield* run("pause", "orders", ...why, "--until", "2100-01-01T00:00Z")
      assert.deepStrictEqual([alone.code, alone.out], [2, ""])
    })
  )
})
