/** OPS-08: a run that no process works on says so, and what to type. */
import { assert, describe, it } from "@effect/vitest"
import type { RunAnswers } from "@eventbus/admin"
import { receiptText, runsText } from "../src/internal/dlt/runText.ts"

const id = "6f1c2c1e-8a55-4a44-9c53-1f9a7d3f6b20"
const since = "2026-11-28T09:30:00.000Z"

const run: RunAnswers.Receipt = {
  ...{ id, action: "replay", state: "running", reason: "INC-1204", by: "ann", count: 9, dealtWith: 4, refused: 0 },
  ...{ rate: 50, started: since, updated: since, host: "host-a", pid: 7 },
  ...{ passed: 3, cameBack: 0, waiting: 1, unknown: 0, elsewhere: 0, closed: false }
}
const abandoned: RunAnswers.Receipt = {
  ...run,
  abandonedSince: since,
  stateReason: `no process works on it since ${since}; resume it`
}

describe("runs on a terminal", () => {
  it("OPS-08 a receipt and a list say since when nobody works on a run, and which command goes on with it", () => {
    const command = `go on with it: eventbus dlt resume app.yaml orders ${id}`
    const receipt = receiptText(abandoned, "app.yaml orders")
    assert.include(receipt, `run ${id}: replay is running: no process works on it since ${since}; resume it\n`)
    assert.isTrue(receipt.endsWith(`\n  ${command}`))
    const list = runsText({ runs: [abandoned] }, "app.yaml orders")
    assert.include(list, `running: no process works on it since ${since}; resume it`)
    assert.isTrue(list.endsWith(`\n${command}`))
  })

  it("OPS-08 a run that somebody works on asks for nothing", () => {
    assert.notInclude(receiptText(run, "app.yaml orders"), "resume")
    assert.notInclude(runsText({ runs: [run] }, "app.yaml orders"), "resume")
  })
})
