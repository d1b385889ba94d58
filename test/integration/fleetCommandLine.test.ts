/** OPS-22: the fleet from the command line, straight on Kafka. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Fleet } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Context, Effect, Layer } from "effect"
import { eventbus } from "../../packages/cli/test/eventbus.ts"
import * as Bus from "./bus.ts"
import * as Journal from "./journal.ts"
import * as Program from "./program.ts"

KafkaSuite.shared("a fleet from the command line", (bootstrap) => {
  Bus.story(
    bootstrap,
    "OPS-13 OPS-14 OPS-22 a hold, its release, and a command whose exit code 4 names the killed process",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("fleetcli")
        const topics = { controlTopic: `${name}.control`, fleetTopic: `${name}.fleet` }
        const fleet = Context.get(yield* Layer.build(Fleet.layer(topics)), Fleet.Fleet)
        const journal = yield* Journal.make
        yield* fleet.createTopics
        yield* Bus.createTopic(name, 1)
        const folder = yield* Effect.acquireRelease(
          Effect.sync(() => mkdtempSync(join(tmpdir(), "eventbus-fleet-"))),
          (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
        )
        const file = { fleet: topics, bindings: { [name]: { topic: name, groupId: name } } }
        writeFileSync(join(folder, "app.json"), JSON.stringify({ eventbus: file }))
        const run = (...args: ReadonlyArray<string>) => eventbus(folder, ...args, "--brokers", bootstrap.join(","))
        const command = (verb: string, ...args: ReadonlyArray<string>) =>
          run(verb, "app.json", name, "--fleet", "--reason", "INC-1204", ...args)

        const launch = Program.run("consumer.ts", {
          brokers: bootstrap,
          journal: journal.path,
          ...{ name, topic: name, groupId: name, handlerMillis: 0, blockMillis: 0, fleet: topics },
          settings: { sessionTimeout: 6_000, heartbeatInterval: 500 }
        })
        const programs = [yield* launch, yield* launch]
        const live = Effect.map(fleet.view, ({ processes }) => processes.filter(({ control }) => control === "known"))
        yield* Bus.until(
          "two processes know the holds",
          Effect.map(live, ({ length }) => length === 2)
        )

        const held = yield* command("pause")
        assert.deepStrictEqual([held.code, held.err], [0, ""])
        assert.match(held.out, /is held in the whole fleet\n2 of 2 processes answered\n$/)
        const { holds, processes } = JSON.parse((yield* run("fleet", "app.json", "--json")).out)
        assert.deepInclude(holds[0], { name, groupId: name, reason: "INC-1204" })
        assert.match(holds[0].by, /^.+@.+$/)
        assert.strictEqual(processes.length, 2)
        assert.isTrue(
          (yield* live).every(({ bindings }) => bindings.every(({ pausedBy }) => pausedBy.includes("fleet")))
        )
        assert.match((yield* command("resume")).out, /is released\n2 of 2 processes answered\n$/)
        assert.match((yield* run("fleet", "app.json")).out, /\nreleased: .*INC-1204 \(held by .*: INC-1204\)\n$/)

        yield* programs[0]!.end("SIGKILL")
        const stopped = yield* command("stop")
        assert.strictEqual(stopped.code, 4)
        assert.match(stopped.err, new RegExp(`^no answer: \\S+, pid ${programs[0]!.pid} \\([\\w-]{36}\\)\\n$`))
        assert.match(stopped.out, /1 of 2 processes answered\n$/)
      }),
    60_000
  )
})
