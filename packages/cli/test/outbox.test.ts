/** `eventbus outbox dead groups|list|show|plan|apply|receipt` and `eventbus outbox replay`, on an embedded database. */
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { OutboxStore } from "@eventbus/outbox"
import { ConfigProvider, Effect } from "effect"
import { type Ended, eventbus, folderWith, program } from "./eventbus.ts"
import { storeDead, storeIn } from "./outboxFile.ts"
import { entries } from "./programs/outboxAudited.ts"

const json = ({ out }: Ended) => JSON.parse(out)
const why = ["--reason", "INC-1204"]

const errors = ["Refused: order 17 is closed", "Refused: order 18 is closed", "TypeError: \u001b[31mx"]

const inStore = <A, E>(folder: string, effect: Effect.Effect<A, E, OutboxStore.OutboxStore>) =>
  Effect.provide(effect, storeIn(join(folder, "outbox.db")))

/** A folder with an outbox that has three dead events: `e-0`, `e-1` and `e-2`. */
const withDead = Effect.gen(function* () {
  const folder = yield* folderWith({ "text.json": "{}" })
  yield* inStore(folder, storeDead(errors))
  return folder
})

const outboxOf =
  (module: string) =>
  (folder: string, verb: string, ...args: ReadonlyArray<string>) =>
    Effect.provideService(
      eventbus(folder, "outbox", ...verb.split(" "), "--outbox", module, ...args),
      ConfigProvider.ConfigProvider,
      ConfigProvider.fromUnknown({ OUTBOX_FILE: join(folder, "outbox.db") })
    )

const outbox = outboxOf(program("outbox"))

describe("eventbus outbox dead", () => {
  it.live("OPS-12 OPS-22 groups, list and show, as text and as JSON", () =>
    Effect.gen(function* () {
      const folder = yield* withDead
      const groups = yield* outbox(folder, "dead groups")
      assert.deepStrictEqual([groups.code, groups.err], [0, ""])
      const [head, first] = groups.out.split("\n")
      assert.strictEqual(head, "2 groups, 3 dead events")
      assert.match(
        first!,
        /^v1-\w{16} {2}2 dead events {2}Placed {2}first \d{4}-.*Z {2}last .*Z {2}Refused: order # is closed$/
      )
      assert.notInclude(groups.out, "\u001b")
      const [group] = json(yield* outbox(folder, "dead groups", "--json")).groups
      assert.deepInclude(group, { count: 2, errorClass: "Refused", samples: ["e-0", "e-1"] })
      const page = yield* outbox(folder, "dead list", "--group", group.fingerprint, "--limit", "1")
      assert.match(page.out, /^e-0 {2}died .*Refused: order 17 is closed\nmore: --after 1\n$/)
      const rest = json(yield* outbox(folder, "dead list", "--after", "1", "--aggregate-id", "1", "--json"))
      assert.deepStrictEqual(
        rest.events.map(({ eventId }: { eventId: string }) => eventId),
        ["e-1"]
      )
      const shown = yield* outbox(folder, "dead show", "e-1")
      assert.match(
        shown.out,
        /^dead event e-1\nerror +Refused: order 18 is closed\n[\s\S]*aggregate +order 1\n[\s\S]*payload +1\n$/
      )
      assert.deepInclude(json(yield* outbox(folder, "dead show", "e-1", "--json")), {
        ...{ eventId: "e-1", group: group.fingerprint, payload: { text: "1" }, headers: {} }
      })
      const none = yield* outbox(folder, "dead show", "e-9")
      assert.deepStrictEqual(none, { code: 1, out: "", err: "no dead event has the id e-9\n" })
    })
  )

  it.live("OPS-12 OPS-22 plan, apply and receipt by a file; a plan is applied once", () =>
    Effect.gen(function* () {
      const folder = yield* withDead
      const file = join(folder, "plan.json")
      const planned = yield* outbox(folder, "dead plan", "--id", "e-0", "--id", "e-2", "--out", file, ...why)
      assert.deepStrictEqual([planned.code, planned.err], [0, ""])
      assert.match(planned.out, /^plan \w{32}: 2 dead events would be replayed\n[\s\S]*events +e-0, e-2\n/)
      assert.match(planned.out, /apply it: eventbus outbox dead apply --outbox \S+outbox\.ts plan\.json\n$/)
      const before = yield* outbox(folder, "dead receipt", file)
      assert.match(
        before.out,
        /^plan \w{32}: replay of 2 dead events\n {2}2 untouched\n {2}the plan was not applied\n$/
      )
      const unapplied = yield* outbox(folder, "dead receipt", file, "--json")
      assert.deepInclude(json(unapplied), { count: 2, untouched: 2, closed: false })
      const applied = yield* outbox(folder, "dead apply", file)
      assert.match(applied.out, /^plan \w{32}: replay of 2 dead events is done\n {2}2 wait\n {2}the receipt is open\n$/)
      assert.strictEqual(applied.code, 0)
      yield* inStore(
        folder,
        OutboxStore.OutboxStore.use((store) => store.markDone(["e-0", "e-2"]))
      )
      const receipt = yield* outbox(folder, "dead receipt", file, "--json")
      assert.deepInclude(json(receipt), { count: 2, delivered: 2, waiting: 0, closed: true })
      const again = yield* outbox(folder, "dead apply", file)
      assert.deepStrictEqual([again.code, again.out], [1, ""])
      assert.match(again.err, /Nothing was done: 2 of the 2 events of plan \w{32} have changed/)
      const taken = yield* outbox(folder, "dead plan", "--all", "--out", file, ...why)
      assert.deepStrictEqual(taken, {
        ...{ code: 2, out: "" },
        err: "--out is plan.json; allowed is the name of a new file, in a folder that is there\n"
      })
    })
  )

  it.live("OPS-12 OPS-22 discard deletes, and nothing is written for a plan without events", () =>
    Effect.gen(function* () {
      const folder = yield* withDead
      const file = join(folder, "plan.json")
      const discard = ["--action", "discard", "--out", file, ...why]
      const empty = yield* outbox(folder, "dead plan", "--type", "Paid", ...discard)
      assert.match(empty.out, /^plan \w{32}: nothing is selected: no dead event meets type Paid\n/)
      assert.strictEqual(empty.code, 1)
      const made = json(yield* outbox(folder, "dead plan", "--all", "--json", ...discard))
      assert.deepInclude(made, { action: "discard", count: 3, reason: "INC-1204" })
      const applied = yield* outbox(folder, "dead apply", file, "--json")
      assert.deepInclude(json(applied), { state: "done", gone: 3, dealtWith: 3 })
      assert.match((yield* outbox(folder, "dead list")).out, /^no dead events\n$/)
    })
  )

  it.live("OPS-12 OPS-22 a group or an id that no dead event has is named", () =>
    Effect.gen(function* () {
      const folder = yield* withDead
      const listed = yield* outbox(folder, "dead list", "--group", "nope", "--aggregate-id", "7")
      assert.deepStrictEqual(listed, { code: 0, out: "no dead events of group nope, aggregate 7\n", err: "" })
      const empty = yield* outbox(folder, "dead plan", "--group", "nope", ...why)
      assert.match(empty.out, /^plan \w{32}: nothing is selected: no dead event meets group nope\n/)
      const some = yield* outbox(folder, "dead plan", "--id", "e-0", "--id", "e-9", "--json", ...why)
      assert.deepStrictEqual([some.code, json(some).count], [0, 1])
      assert.strictEqual(some.err, "no dead event that meets the flags has the id e-9\n")
    })
  )

  it.live("OPS-12 OPS-22 replay of one event, with a reason", () =>
    Effect.gen(function* () {
      const folder = yield* withDead
      const replayed = yield* outbox(folder, "replay", "e-1", ...why)
      assert.deepStrictEqual([replayed.code, replayed.out], [0, "event e-1 is replayed: it is delivered again\n"])
      const again = yield* outbox(folder, "replay", "e-1", "--json", ...why)
      assert.deepStrictEqual([again.code, json(again)], [1, { eventId: "e-1", replayed: false }])
      const blank = yield* outbox(folder, "replay", "e-1", "--reason", " ")
      assert.deepStrictEqual([blank.code, blank.out], [2, ""])
    })
  )

  it.live("OPS-22 wrong flags are exit code 2, with the flag, what was found and what is allowed", () =>
    Effect.gen(function* () {
      const folder = yield* withDead
      const refused = (...args: ReadonlyArray<string>) =>
        Effect.map(outbox(folder, "dead plan", ...why, ...args), ({ code, err }) => {
          assert.strictEqual(code, 2, err)
          return err
        })
      assert.match(yield* refused(), /^name the events by --group, --type, .* or --all\n$/)
      assert.match(yield* refused("--all", "--rate", "0"), /^--rate is 0; allowed is a whole number, 1 to 100000\n$/)
      assert.match(yield* refused("--all", "--canary-wait", "soon"), /^--canary-wait is 'soon'; allowed is a duration/)
      assert.match(yield* refused("--id", "größe"), /^--id is 'größe'; allowed is the id of an event/)
      assert.match(
        yield* refused("--all", "--action", "discard", "--canary", "1"),
        /^--canary is 1; allowed is nothing: only replay has it/
      )
      assert.match(yield* refused("--all", "--type", "Paid"), /^--all is true; allowed is no 'all' beside eventType\n$/)
      assert.strictEqual((yield* outbox(folder, "dead list", "--after", "x")).code, 2)
      assert.strictEqual((yield* eventbus(folder, "outbox", "dead", "groups")).code, 2)
    })
  )

  it.live("OPS-22 a file without a plan, and a plan that was changed, are refused", () =>
    Effect.gen(function* () {
      const folder = yield* withDead
      const none = yield* outbox(folder, "dead apply", join(folder, "text.json"))
      assert.deepStrictEqual([none.code, none.out], [1, ""])
      assert.match(none.err, /^text\.json has no plan: allowed is a file that 'outbox dead plan --out' has written\n$/)
      for (const path of [join(folder, "absent.json"), tmpdir()]) {
        const absent = yield* outbox(folder, "dead receipt", path)
        assert.deepStrictEqual([absent.code, absent.out], [2, ""])
        assert.match(absent.err, /^the plan is \S+; allowed is a file that 'outbox dead plan --out' has written\n$/)
      }
      const made = yield* outbox(folder, "dead plan", "--id", "e-0", "--json", ...why)
      const other = yield* folderWith({ "plan.json": made.out.replace('"e-0"', '"e-1"').replace('"e-0"', '"e-1"') })
      const changed = yield* outbox(folder, "dead apply", join(other, "plan.json"))
      assert.strictEqual(changed.code, 1)
      assert.match(
        changed.err,
        /^plan\.id is .*; allowed is the hash of the plan, which was changed since it was made\n$/
      )
    })
  )
})

describe("the module of --outbox", () => {
  it.live("OPS-22 one sentence for a module that is missing, exports no layer, or provides no store", () =>
    Effect.gen(function* () {
      const folder = yield* withDead
      const ended = (module: string) =>
        Effect.map(outboxOf(module)(folder, "dead groups"), ({ code, out, err }) => {
          assert.strictEqual(out, "")
          assert.match(err, /^[^\n]+\n$/)
          return `${code} ${err}`
        })
      assert.match(yield* ended("absent.ts"), /^3 absent\.ts cannot be loaded: /)
      assert.match(
        yield* ended(program("nothing")),
        /^1 \S+nothing\.ts has no outbox: it should `export default` a Layer/
      )
      assert.match(yield* ended(program("noStore")), /^1 \S+noStore\.ts provides no OutboxStore: it should/)
    })
  )

  it.live("OPS-22 a database that cannot be opened, or has no outbox, is exit code 3 with the cause", () =>
    Effect.gen(function* () {
      const folder = yield* folderWith({ "outbox.db": "" })
      for (const verb of ["dead groups", "dead list", "dead show e-1"]) {
        const missing = yield* outbox(folder, verb)
        assert.deepStrictEqual([missing.code, missing.out], [3, ""])
        assert.match(missing.err, /^Outbox store: read dead events failed: .*no such table: outbox_event\n$/)
      }
      const closed = yield* outbox(join(folder, "absent"), "dead groups")
      assert.deepStrictEqual([closed.code, closed.out], [3, ""])
      assert.match(closed.err, /outbox\.ts: Outbox store: opening the database failed: .*unable to open database file/)
    })
  )

  it.live("OPS-12 OPS-22 where the module provides an audit log, it has who did what, and why", () =>
    Effect.gen(function* () {
      const folder = yield* withDead
      const audited = outboxOf(program("outboxAudited"))
      yield* audited(folder, "dead show", "e-1")
      yield* audited(folder, "replay", "e-1", ...why)
      assert.deepStrictEqual(
        entries.map(({ action, outcome, reason }) => [action, outcome, reason]),
        [
          ["outboxShow", "view", undefined],
          ["outboxReplay", "begun", "INC-1204"],
          ["outboxReplay", "done", "INC-1204"]
        ]
      )
    })
  )
})
