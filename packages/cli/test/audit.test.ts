/** OPS-22 OPS-25: `eventbus audit` by `--url`, and what it says of commands that came from the command line. */
import { assert, describe, it } from "@effect/vitest"
import { AdminWeb } from "@eventbus/admin"
import type { Audit } from "@eventbus/core"
import { Effect, Logger } from "effect"
import { everything, start, token } from "../../admin/test/api.ts"
import { eventbus, folderWith, withToken } from "./eventbus.ts"
import { served } from "./served.ts"

/** A process, and the command line beside it. */
const beside = Effect.fnUntraced(function* (settings?: Audit.Settings) {
  const { context } = yield* start(settings === undefined ? {} : { audit: settings })
  const web = yield* AdminWeb.make({ authorizer: everything }).pipe(
    Effect.provideContext(context),
    Effect.provide(Logger.layer([]))
  )
  const url = yield* served(web)
  return (...args: ReadonlyArray<string>) => withToken(token, ...args, "--url", url)
})

describe("OPS-22 OPS-25 eventbus audit", () => {
  it.live("shows a line for each action, the newest first, and the cursor of the page that follows", () =>
    Effect.gen(function* () {
      const run = yield* beside({})
      yield* run("pause", "orders", "--reason", "INC-1204\nall is well")
      yield* run("pause", "orders", "--reason", "twice")
      const { code, out } = yield* run("audit", "--limit", "1")
      assert.strictEqual(code, 0)
      const [line, more] = out.split("\n")
      assert.match(line!, /^\S+Z {2}operator {2}command-line {2}pause {2}default:orders {2}refused \(\w+\) {2}twice$/)
      const older = yield* run("audit", "--before", more!.replace("more: --before ", ""))
      assert.match(
        older.out,
        /^\S+Z {2}operator {2}command-line {2}pause {2}default:orders {2}done {2}INC-1204\S.* well\n$/
      )
      const json = JSON.parse((yield* run("audit", "--binding", "orders", "--after", "1h", "--json")).out)
      assert.deepStrictEqual(
        json.entries.map(({ outcome }: { readonly outcome: string }) => outcome),
        ["refused", "done"]
      )
      assert.strictEqual((yield* run("audit", "--after", "2999-01-01")).out, "nothing was done\n")
    })
  )

  it.live("a process and a file without an audit log are a no, and a wrong line is wrong usage", () =>
    Effect.gen(function* () {
      const run = yield* beside()
      const off = yield* run("audit")
      assert.deepStrictEqual([off.code, off.out], [1, ""])
      assert.match(off.err, /has no audit log/)
      const folder = yield* folderWith({ "app.yaml": "eventbus: { bindings: { orders: { topic: o, group-id: g } } }" })
      const none = yield* eventbus(folder, "audit", "app.yaml", "--brokers", "127.0.0.1:1")
      assert.deepStrictEqual([none.code, none.err], [1, "app.yaml has no section eventbus.audit\n"])
      for (const [args, message] of [
        [["audit"], /^found no file; allowed is one, or --url/],
        [["audit", "app.yaml", "--url", "http://x"], /^found a file; allowed is none/],
        [["audit", "app.yaml", "--after", "soon"], /^--after is "soon"; allowed is a time/]
      ] as const) {
        const wrong = yield* eventbus(folder, ...args)
        assert.deepStrictEqual([wrong.code, wrong.out], [2, ""], args.join(" "))
        assert.match(wrong.err, message)
      }
    })
  )
})
