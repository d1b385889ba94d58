import { spawn, spawnSync } from "node:child_process"
import { join } from "node:path"
import { expect, it } from "vitest"
import { whenUsable } from "../../../test/services/suites.ts"

const namespace = ["-Urpf", "--mount-proc", "--kill-child"]
const problem =
  spawnSync("unshare", [...namespace, "true"]).status === 0
    ? undefined
    : "No process can be the first of a namespace here: unshare of util-linux is missing, or not allowed"

/** Starts the service as process 1, sends it signals once it handles, and answers how it ended and what it printed. */
const ended = (mode: string, signals: number): Promise<readonly [number | null, string]> =>
  new Promise((resolve) => {
    const file = join(import.meta.dirname, "firstProcess.ts")
    const command = [process.execPath, "--no-warnings", file, mode]
    const child = spawn("unshare", [...namespace, ...command], { stdio: ["ignore", "pipe", "inherit"] })
    let output = ""
    child.stdout.on("data", (text: Buffer) => {
      output += text
      if (!/handling\n$/.test(output)) return
      // A signal to `unshare` would not reach its child, the service.
      const first = spawnSync("pgrep", ["-P", String(child.pid)], { encoding: "utf8" }).stdout.trim()
      for (let sent = 0; sent < signals; sent++) setTimeout(() => process.kill(Number(first), "SIGTERM"), 200 * sent)
    })
    child.on("exit", (code) => resolve([code, output]))
  })

whenUsable("a bus in the first process of a container", problem, () => {
  it("RCH-06: at SIGTERM the handler ends, and so does the process, with the code of the signal", async () => {
    expect(await ended("quick", 1)).toEqual([143, "handling\nhandled\n"])
  })

  it("RCH-06: a second signal ends it at once", async () => {
    const began = performance.now()
    expect(await ended("stuck", 2)).toEqual([143, "handling\n"])
    expect(performance.now() - began).toBeLessThan(20_000)
  })
})
