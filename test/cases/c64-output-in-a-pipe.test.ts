import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { folderWith } from "../../packages/cli/test/eventbus.ts"

const main = fileURLToPath(new URL("../../packages/cli/src/main.ts", import.meta.url))

/** A configuration with so many bindings, each of them with a mistake. */
const mistakes = (count: number) =>
  [
    "eventbus:",
    "  bindings:",
    ...Array.from(
      { length: count },
      (_, n) => `    binding-${n}: { topic: topic-${n}, group-id: g, concurrency: 0, unknown-key: 1 }`
    )
  ].join("\n")

const correct = (count: number) =>
  [
    "eventbus:",
    "  bindings:",
    ...Array.from({ length: count }, (_, n) => `    binding-${n}: { topic: topic-${n}, group-id: group-${n} }`)
  ].join("\n")

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** How long a command may take on a busy machine. */
const timeoutMillis = 30_000

/**
 * Runs the command with its output in a pipe. A slow reader reads nothing for a second; one that closes reads one chunk. A command that does not end is killed, and
 * the failure says how far it came.
 */
const piped = (folder: string, args: ReadonlyArray<string>, reader: "slow" | "closes") =>
  Effect.promise(
    () =>
      new Promise<Ended>((resolve, reject) => {
        const child = spawn(process.execPath, ["--no-warnings", main, ...args], {
          cwd: folder,
          stdio: ["ignore", "pipe", "pipe"],
          env: { ...process.env, NO_COLOR: "1" }
        })
        let out = ""
        let err = ""
        child.stderr.setEncoding("utf8").on("data", (text: string) => {
          err += text
        })
        const read = () =>
          child.stdout.setEncoding("utf8").on("data", (text: string) => {
            out += text
            if (reader === "closes") child.stdout.destroy()
          })
        setTimeout(read, 1_000)
        const stuck = setTimeout(() => {
          const state = child.exitCode === null ? "it runs" : `it exited with ${child.exitCode}, and its pipes are open`
          reject(
            new Error(
              `eventbus ${args.join(" ")}: ${state} after ${timeoutMillis} ms; ${out.length} characters read; ${err}`
            )
          )
          child.kill("SIGKILL")
        }, timeoutMillis)
        child.once("close", (code) => {
          clearTimeout(stuck)
          resolve({ code, out, err })
        })
      })
  )

describe("C64 a command's output is cut in a pipe", () => {
  it.live(
    "every verb writes its output completely before the process ends, whatever the exit status",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const folder = yield* folderWith({ "bad.yaml": mistakes(3_000), "good.yaml": correct(600) })
          const json = yield* piped(folder, ["validate", "bad.yaml", "--json"], "slow")
          assert.deepStrictEqual([json.code, json.err], [1, ""])
          const { issues } = JSON.parse(json.out)
          assert.lengthOf(issues, 6_000)
          const text = yield* piped(folder, ["validate", "bad.yaml"], "slow")
          assert.strictEqual(text.code, 1)
          assert.include(text.out, "eventbus.bindings.binding-2999.concurrency")
          const plan = yield* piped(folder, ["plan", "good.yaml", "--json"], "slow")
          assert.strictEqual(plan.code, 0)
          assert.lengthOf(JSON.parse(plan.out).plans, 600)
          const unreachable = ["plan", "good.yaml", "--json", "--binding", "binding-1", "--brokers", "127.0.0.1:1"]
          const refused = yield* piped(folder, unreachable, "slow")
          assert.strictEqual(refused.code, 3)
          assert.lengthOf(JSON.parse(refused.out).plans, 1)
          const usage = yield* piped(folder, ["validate", "--nothing-of-it"], "slow")
          assert.strictEqual(usage.code, 2)
          assert.include(usage.err, "--help lists commands and flags")
        })
      ),
    120_000
  )

  it.live(
    "a closed pipe ends a command quietly",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const folder = yield* folderWith({ "bad.yaml": mistakes(1_000), "good.yaml": correct(600) })
          for (const args of [
            ["validate", "bad.yaml", "--json"],
            ["validate", "bad.yaml"],
            ["plan", "good.yaml"]
          ]) {
            const ended = yield* piped(folder, args, "closes")
            assert.strictEqual(ended.err, "", args.join(" "))
            assert.isNotNull(ended.code, args.join(" "))
          }
        })
      ),
    120_000
  )
})
