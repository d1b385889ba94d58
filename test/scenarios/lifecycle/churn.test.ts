import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"

interface Resources {
  readonly fibers: number
  readonly timers: number
  readonly sockets: number
  readonly series: number
  readonly heapBytes: number
}

/** The resources of the program after a tenth of the rounds, and at the end. */
const churn = (rounds: number): readonly [Resources, Resources] => {
  const program = fileURLToPath(new URL("../programs/churn.ts", import.meta.url))
  const { KAFKA_BROKERS: _, ...env } = process.env
  const arguments_ = ["--no-warnings", "--expose-gc", program, String(rounds)]
  const { stdout, stderr } = spawnSync(process.execPath, arguments_, { encoding: "utf8", env, maxBuffer: 1e8 })
  const lines = stdout.split("\n").filter((line) => line.startsWith('{"fibers"'))
  assert.strictEqual(lines.length, 2, stderr)
  return [JSON.parse(lines[0]!), JSON.parse(lines[1]!)]
}

describe("a binding that is registered and destroyed again and again", () => {
  it("LIF-16 BND-12 1,000 rounds of register and destroy: no growth in fibers, timers, sockets, series, memory", () => {
    const [early, late] = churn(1_000)
    const { heapBytes: _, ...left } = late
    assert.deepStrictEqual(left, {
      ...left,
      fibers: early.fibers,
      timers: early.timers,
      sockets: 0,
      series: early.series
    })
    // The broker of the program keeps what was written and committed: two kilobytes a round.
    assert.isBelow(late.heapBytes - early.heapBytes, 5e6)
  }, 240_000)
})
