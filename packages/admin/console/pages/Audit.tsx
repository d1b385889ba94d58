/** Who did what, to what, why, and with which outcome: the newest first. */
import { useState } from "preact/hooks"
import type { AuditEntry, AuditPage } from "../../src/AuditAnswers.ts"
import { part } from "../data/api.ts"
import { useAnswer } from "../data/hooks.ts"
import { to } from "../data/route.ts"
import { type Column, Mark, Table, Title, Waiting } from "../parts/layout.tsx"
import { Since } from "../parts/text.tsx"

const tones = { begun: "mild", done: "good", refused: "plain", failed: "bad" } as const

const valueOf = (value: string | number | boolean | ReadonlyArray<string>): string =>
  typeof value === "object" ? value.join(", ") : String(value)

/** The selection or the target in words, such as `tier 2, groups v1-…`. */
const targetOf = ({ target = {} }: AuditEntry): string =>
  Object.entries(target)
    .map(([name, value]) => `${name} ${valueOf(value)}`)
    .join(", ")

const columns: ReadonlyArray<Column<AuditEntry>> = [
  { title: "When", of: ({ at }) => <Since at={at} /> },
  { title: "Who", of: ({ by = "unknown" }) => by, isLong: true },
  {
    title: "What",
    of: (entry) => (
      <>
        {entry.action}
        {entry.binding !== undefined && (
          <>
            {" of "}
            <a href={to.binding(entry.binding)}>{entry.binding}</a>
          </>
        )}
        {targetOf(entry) !== "" && <span class="line dim">{targetOf(entry)}</span>}
        {entry.run !== undefined && <span class="line dim">{entry.run}</span>}
      </>
    ),
    isLong: true
  },
  { title: "Why", of: ({ reason = "" }) => reason, isLong: true },
  {
    title: "Outcome",
    of: ({ outcome, error, repeats }) => (
      <>
        <Mark tone={tones[outcome]}>{outcome}</Mark>
        {error !== undefined && <span class="line dim">{error}</span>}
        {repeats > 0 && <span class="line dim">and {repeats} before it</span>}
      </>
    )
  },
  { title: "From", of: ({ from, host }) => `${from}, ${host}`, isLong: true, isExtra: true }
]

export const Audit = () => {
  const [typed, setTyped] = useState("")
  const [binding, setBinding] = useState("")
  const [before, setBefore] = useState<string>()
  const query = [
    ...(binding === "" ? [] : [`binding=${part(binding)}`]),
    ...(before === undefined ? [] : [`before=${part(before)}`])
  ].join("&")
  const { value, refusal, reload } = useAnswer<AuditPage>(query === "" ? "audit" : `audit?${query}`)
  const filter = (event: Event): void => {
    event.preventDefault()
    setBefore(undefined)
    setBinding(typed.trim())
  }
  return (
    <>
      <Title name="Audit">Audit</Title>
      <form onSubmit={filter}>
        <label for="binding">Only of this binding</label>
        <input id="binding" type="search" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
        <p class="buttons">
          <button type="submit">Show</button>
        </p>
      </form>
      {refusal !== undefined || value === undefined ? (
        <Waiting refusal={refusal} />
      ) : value.entries.length === 0 ? (
        <p>Nothing was done yet.</p>
      ) : (
        <Table label="Actions" rows={value.entries} columns={columns} keyOf={({ id, outcome }) => `${id} ${outcome}`} />
      )}
      <p class="buttons">
        <button type="button" onClick={before === undefined ? reload : () => setBefore(undefined)}>
          Show the newest
        </button>
        {value?.next !== undefined && (
          <button type="button" onClick={() => setBefore(value.next)}>
            Show older ones
          </button>
        )}
      </p>
    </>
  )
}
