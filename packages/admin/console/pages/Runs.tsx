/** All runs over the dead letters of a binding, the newest first. */
import type { Run, Runs as RunsAnswer } from "../../src/RunAnswers.ts"
import { part } from "../data/api.ts"
import { useAnswer } from "../data/hooks.ts"
import { to } from "../data/route.ts"
import { BindingTabs } from "../parts/BindingTabs.tsx"
import { type Column, StateMark, Table, Waiting } from "../parts/layout.tsx"
import { Since } from "../parts/text.tsx"

/** What a run does, in a word. */
export const verbOf = ({ action, tier }: Pick<Run, "action" | "tier">): string =>
  ({ replay: "Replay", toTier: `Replay to tier ${tier}`, discard: "Discard", restore: "Restore" })[action]

const columnsOf = (key: string): ReadonlyArray<Column<Run>> => [
  {
    title: "Run",
    of: (run) => (
      <a href={to.run(key, run.id)}>
        {verbOf(run)}: {run.reason}
      </a>
    ),
    isLong: true
  },
  { title: "State", of: ({ state }) => <StateMark state={state} /> },
  {
    title: "Dealt with",
    of: ({ dealtWith, count }) => (
      <>
        {dealtWith} of {count}
        <progress max={Math.max(1, count)} value={dealtWith} aria-label="Dealt with" />
      </>
    )
  },
  { title: "By", of: ({ by }) => by, isExtra: true },
  { title: "Began", of: ({ started }) => <Since at={started} />, isExtra: true }
]

export const Runs = ({ binding }: { readonly binding: string }) => {
  const { value, refusal } = useAnswer<RunsAnswer>(`bindings/${part(binding)}/dlt/runs`, () => 3_000)
  return (
    <>
      <BindingTabs binding={binding} tab="Runs" />
      {value === undefined ? (
        <Waiting refusal={refusal} />
      ) : value.runs.length === 0 ? (
        <p>No plan was applied yet.</p>
      ) : (
        <Table label="Runs" rows={value.runs} columns={columnsOf(binding)} keyOf={({ id }) => id} />
      )}
    </>
  )
}
