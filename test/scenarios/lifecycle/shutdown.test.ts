import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"

const program = fileURLToPath(new URL("../programs/stoppable.ts", import.meta.url))

interface Ended {
  readonly lines: ReadonlyArray<string>
  readonly exitCode: number | null
  readonly millis: number
}

/** Runs the program, sends the signal as soon as its first record is being handled, and waits for its end. */
const signalled = (signal: NodeJS.Signals, ...args: ReadonlyArray<string>): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const child: ChildProcess = spawn(process.execPath, [program, ...args], { stdio: ["ignore", "pipe", "inherit"] })
    let output = ""
    let signalledAt = 0
    child.once("error", reject)
    child.stdout?.on("data", (data) => {
      output += String(data)
      if (signalledAt > 0 || !output.includes("started first")) return
      signalledAt = performance.now()
      child.kill(signal)
    })
    child.once("close", (exitCode) => {
      const lines = output.split("\n").filter((line) => /^(started|handled|committed) /.test(line))
      resolve({ lines, exitCode, millis: performance.now() - signalledAt })
    })
  })

describe("a signal to a running program (TST-06: graceful shutdown)", () => {
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    it(`LIF-15 CARD-08 ${signal}: the running handler ends, its offset is committed, the consumer leaves the group, nothing else starts`, async () => {
      const { lines } = await signalled(signal)
      assert.deepStrictEqual(lines, ["started first", "handled first", "committed 1 members 0 clients 0"])
    })
  }

  it("LIF-12 LIF-15 C18 SIGTERM with a handler that never ends: the process ends within the limit, the record uncommitted", async () => {
    const { lines, millis } = await signalled("SIGTERM", "slow")
    assert.strictEqual(lines[0], "started first")
    assert.match(lines.at(-1) ?? "", /^committed (0|undefined) members 0 clients 0$/)
    assert.isFalse(lines.includes("handled first"))
    assert.isBelow(millis, 10_000)
  })
})
