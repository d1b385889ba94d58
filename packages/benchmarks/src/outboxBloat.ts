/** The size of the outbox's table under a steady stream of events. */
import { type Measure, make } from "./harness/Benchmark.ts"
import { growth } from "./outbox/bloat.ts"

const shapes = { deleted: "deleted", kept: "kept 30 s", claimed: "claimed, kept 30 s" }
const settings = { migration: "as migrated", airy: "fill factor 85", plain: "PostgreSQL's autovacuum" }
const figures = {
  table: "MB",
  indexes: "MB",
  packed: "MB",
  rows: "rows",
  hot: "% HOT"
}

export const outboxBloat = make({
  name: "outboxBloat",
  header: [
    "500 events of 500 bytes per second for 150 s, five per transaction, delivered at once; sizes are medians of the second half, all nine tables at the same time",
    "kept: DONE rows are purged after 30 s; packed: the same rows without a hole; HOT: updates that no index noticed"
  ],
  parameters: { perSecond: 500, seconds: 150 },
  smoke: { perSecond: 20, seconds: 4 },
  rounds: 1,
  participants: { table: { topic: { lifetime: "run", partitions: 1 }, role: growth } },
  measures: Object.entries(shapes).flatMap(([shape, what]) =>
    Object.entries(settings).flatMap(([setting, how]) =>
      Object.entries(figures).map(
        ([figure, unit]): Measure => ({
          participant: "table",
          series: `${shape} ${setting} ${figure}`,
          label: `${what}, ${how}: ${figure}`,
          unit
        })
      )
    )
  )
})
