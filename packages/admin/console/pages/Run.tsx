/** A run, and its receipt by now. */
import { useEffect, useId, useState } from "preact/hooks"
import type { Receipt } from "../../src/RunAnswers.ts"
import { part, post } from "../data/api.ts"
import { type Permission, useAnswer, useChange, usePermissions } from "../data/hooks.ts"
import { Ask } from "../parts/Ask.tsx"
import { announce } from "../parts/announce.tsx"
import { BindingTabs } from "../parts/BindingTabs.tsx"
import { Facts, Problem, Section, StateMark, Waiting } from "../parts/layout.tsx"
import { counted, number, Since } from "../parts/text.tsx"
import { verbOf } from "./Runs.tsx"

interface Props {
  readonly binding: string
  readonly run: Receipt
  readonly may: (permission: Permission) => boolean
  readonly reload: () => void
}

const isOver = ({ state }: Receipt): boolean => state === "done" || state === "cancelled"

const isCopying = ({ action }: Receipt): boolean => action === "replay" || action === "toTier"

/** The receipt in sentences. */
export const receiptOf = (run: Receipt): string => {
  const { count, dealtWith, refused, passed, cameBack, waiting, unknown, elsewhere, closed } = run
  const done = `${number(dealtWith)} of ${counted(count, "letter")} dealt with`
  const parts = [
    ...(isCopying(run)
      ? [`${number(passed)} passed`, `${number(cameBack)} came back`, `${number(waiting)} wait for their outcome`]
      : []),
    ...(refused > 0 ? [`${number(refused)} stayed`] : []),
    ...(unknown > 0 ? [`${number(unknown)} may have come back`] : []),
    ...(elsewhere > 0 ? [`${number(elsewhere)} went to topics that the binding does not read`] : [])
  ]
  return `${[done, ...parts].join(", ")}.${closed ? " The receipt is closed." : ""}`
}

/** The permission for the work of the run. */
const needed = ({ action }: Receipt): Permission => (action === "replay" || action === "toTier" ? "replay" : "discard")

const Rate = ({ binding, run, reload }: Omit<Props, "may">) => {
  const [rate, setRate] = useState(run.rate)
  const { isBusy, refusal, run: change } = useChange()
  const id = useId()
  const submit = (event: Event) => {
    event.preventDefault()
    change(async () => {
      await post<Receipt>(`bindings/${part(binding)}/dlt/runs/${part(run.id)}/rate`, { rate })
      announce(`The rate is ${counted(rate, "copy", "copies")} a second.`)
      reload()
    })
  }
  return (
    <form onSubmit={submit}>
      <label for={id}>Most copies a second: {rate}</label>
      <input
        id={id}
        type="range"
        min={1}
        max={Math.max(500, run.rate)}
        value={rate}
        onInput={(event) => setRate(Number(event.currentTarget.value))}
      />
      <Problem refusal={refusal} />
      <p class="buttons">
        <button type="submit" disabled={isBusy || rate === run.rate}>
          Set the rate
        </button>
      </p>
    </form>
  )
}

const Commands = (props: Props) => {
  const { binding, run, may, reload } = props
  if (isOver(run)) return null
  const mayWork = may(needed(run)) && (run.transform === undefined || may("transform"))
  const mayEnd = may("operate") || mayWork
  const command = async (verb: string, body?: unknown) => {
    const { state } = await post<Receipt>(`bindings/${part(binding)}/dlt/runs/${part(run.id)}/${verb}`, body)
    announce(`The run is ${state}.`)
    reload()
  }
  return (
    <>
      <p class="buttons">
        {mayEnd && run.state === "running" && (
          <Ask verb="Pause" question="Pause this run?" asksWhy act={(reason) => command("pause", { reason })} />
        )}
        {mayWork && (
          <Ask verb="Resume" question="Go on with this run, in this process?" act={() => command("resume")}>
            {run.state === "running" && <p>It helps where the process that worked on it is gone.</p>}
          </Ask>
        )}
        {mayEnd && (
          <Ask
            verb="Cancel"
            question="End this run for good?"
            asksWhy
            isDanger
            act={(reason) => command("cancel", { reason })}
          >
            <p>Copies that are published stay. The other letters stay as they are.</p>
          </Ask>
        )}
      </p>
      {mayWork && isCopying(run) && <Rate binding={binding} run={run} reload={reload} />}
    </>
  )
}

const Detail = (props: Props) => {
  const { run } = props
  const { count, dealtWith, passed, stateReason, refusals = [] } = run
  useEffect(() => {
    if (run.closed) announce(receiptOf(run))
  }, [run.closed])
  return (
    <>
      <p class="lead">
        <StateMark state={run.state} /> {stateReason ?? ""}
      </p>
      <p>
        <strong>{receiptOf(run)}</strong>
      </p>
      <Bar label="Dealt with" value={dealtWith} of={count} />
      {isCopying(run) && <Bar label="Passed" value={passed} of={count} />}
      <Commands {...props} />
      <Section title="The run">
        <Facts
          facts={[
            ["Reason", run.reason],
            ["By", run.by],
            ["Began", <Since key="started" at={run.started} />],
            ["Last heard of", <Since key="updated" at={run.updated} />],
            ["Worked on by", `${run.host}, process ${run.pid}`],
            ["Transform", run.transform],
            ["Stayed because", refusals.map(({ name, count: letters }) => `${name} (${number(letters)})`).join("; ")],
            ["Name", run.id]
          ]}
        />
      </Section>
    </>
  )
}

const Bar = ({ label, value, of }: { readonly label: string; readonly value: number; readonly of: number }) => {
  const id = useId()
  return (
    <div class="bar">
      <span id={id}>
        {label}: {number(value)} of {number(of)}
      </span>
      <progress max={Math.max(1, of)} value={value} aria-labelledby={id} />
    </div>
  )
}

export const Run = ({ binding, id }: { readonly binding: string; readonly id: string }) => {
  const may = usePermissions(binding)
  const { value, refusal, reload } = useAnswer<Receipt>(`bindings/${part(binding)}/dlt/runs/${part(id)}`, (last) =>
    last?.closed === true ? undefined : last !== undefined && isOver(last) ? 3_000 : 1_000
  )
  return (
    <>
      <BindingTabs binding={binding} tab="Runs" detail={value === undefined ? "Run" : verbOf(value)} />
      {value === undefined ? (
        <Waiting refusal={refusal} />
      ) : (
        <>
          <Problem refusal={refusal} />
          <Detail binding={binding} run={value} may={may} reload={reload} />
        </>
      )}
    </>
  )
}
