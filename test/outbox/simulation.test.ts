/** The outbox in simulated worlds. `OUTBOX_SEEDS=10000` runs more of them, `OUTBOX_FIRST_SEED=20001` others. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Check from "./simulation/checkers.ts"
import { simulate, type World } from "./simulation/simulator.ts"

const seeds = Number(process.env.OUTBOX_SEEDS ?? 12)
const firstSeed = Number(process.env.OUTBOX_FIRST_SEED ?? 1)

const checksOf = (world: World) => [
  Check.nothingLost,
  Check.terminalStaysTerminal,
  Check.attemptsExact,
  Check.duplicatesExplained,
  ...(world.shape === "ordered" ? [Check.orderPerAggregate] : [])
]

const problemsOf = (world: World) =>
  Effect.map(simulate(world), (history) => checksOf(world).flatMap((check) => check(history)))

const clean = (shape: World["shape"], faults: World["faults"]) =>
  Effect.gen(function* () {
    for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
      const problems = yield* problemsOf({ seed, shape, faults })
      assert.deepStrictEqual(problems, [], `seed ${seed}, ${shape}, faults ${faults}`)
    }
  })

/** A run in which this bug must be noticed by a check. */
const caught = (what: string, world: Omit<World, "seed">, expected: RegExp) =>
  it.live(`catches: ${what}`, () =>
    Effect.gen(function* () {
      for (let seed = 1; seed <= 30; seed++) {
        const problems = yield* problemsOf({ ...world, seed })
        if (problems.some((problem) => expected.test(problem))) return
      }
      assert.fail("no seed has shown the planted bug")
    })
  )

describe("simulation", () => {
  for (const shape of ["multi", "ordered"] as const) {
    for (const faults of ["none", "all"] as const) {
      it.live(
        `OUT-S-08 OUT-S-11 OUT-D-19 OUT-O-01: ${shape}, faults ${faults}: clean`,
        () => clean(shape, faults),
        3_600_000
      )
    }
  }

  caught(
    "an event that is passed over while it waits",
    { shape: "ordered", faults: "none", afterFailure: "passOver" },
    /before/
  )
  caught(
    "a claim that others do not respect",
    {
      shape: "multi",
      faults: "none",
      plant: (text) => text.replace("AND (locked_at IS NULL OR", "AND (1 = 1 OR locked_at IS NULL OR")
    },
    /without any fault/
  )
  caught(
    "rows marked when they are claimed",
    {
      shape: "multi",
      faults: "all",
      plant: (text) => text.replace("SET locked_by = ?,", "SET status = 1, locked_by = ?,")
    },
    /no listener handled it/
  )
  caught(
    "a late result that changes a finished row",
    {
      shape: "multi",
      faults: "all",
      plant: (text) =>
        text.replace(
          /^(UPDATE outbox_event SET status = .*) AND status IN \(0, 2\) AND locked_by = \?/s,
          "$1 AND 0 <> ?"
        )
    },
    /went from|attempts|not finished/
  )
  caught(
    "a bucket that two nodes deliver from",
    {
      shape: "ordered",
      faults: "none",
      plant: (text) => text.replace("(owner IS NULL OR expires_at <=", "(1 = 1 OR owner IS NULL OR expires_at <=")
    },
    /before|without any fault/
  )
})
