import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it, vi } from "vitest"
import { isAlive } from "../src/internal/isAlive.ts"

const owner = `
  import { spawnGuarded } from "${new URL("../src/internal/brokerProcess.ts", import.meta.url)}"
  const folder = process.argv[1]
  const broker = spawnGuarded(folder, { command: "sleep", args: ["600"], logFile: folder + "/broker.log" })
  console.log(broker.pid)
`

it("a broker and its data do not outlive an owner that kill -9 ended", async () => {
  const folder = mkdtempSync(join(tmpdir(), "guarded-"))
  const ownerProcess = spawn(process.execPath, ["--input-type=module", "-e", owner, folder], {
    stdio: ["ignore", "pipe", "inherit"]
  })
  const [line] = await once(ownerProcess.stdout, "data")
  const brokerPid = Number(line)
  expect(isAlive(brokerPid)).toBe(true)

  ownerProcess.kill("SIGKILL")

  await vi.waitFor(() => expect(isAlive(brokerPid)).toBe(false), { timeout: 10_000 })
  await vi.waitFor(() => expect(existsSync(folder)).toBe(false), { timeout: 10_000 })
})
