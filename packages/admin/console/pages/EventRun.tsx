/** The work on a plan over dead events, and the fate of its events by now. */
import { useEffect } from "preact/hooks"
import type { Receipt } from "../../src/DeadEventAnswers.ts"
import { part, post } from "../data/api.ts"
import { useAnswer, useOutboxPermissions } from "../data/hooks.ts"
import { to } from "../data/route.ts"
import { Ask } from "../parts/Ask.tsx"
import { announce } from "../parts/announce.tsx"
import { Facts, Problem, Section, StateMark, Title, Waiting } from "../parts/layout.tsx"
import { counted, number, Since } from "../parts/text.tsx"

const verbs: Readonly<Record<Receipt["action"], string>> = { replay: "Replay", discard: "Deletion" }

/** The receipt in sentences. */
const receiptOf = ({ action, count, closed, ...fates }: Receipt): string => {
  const told = [
    [fates.delivered, "delivered"],
    [fates.gone, action === "discard" ? "deleted" : "gone from the table"],
    [fates.deadAgain, "dead again"],
    [fates.waiting - fates.retrying, "wait for their delivery"],
    [fates.retrying, "failed again and are retried"],
    [fates.untouched, "untouched"]
  ] as const
  const parts = told.filter(([events]) => events > 0).map(([events, text]) => `${number(events)} ${text}`)
  return `Of ${counted(count, "event")}: ${parts.join(", ")}.${closed ? " The receipt is closed." : ""}`
}

interface Props {
  readonly run: Receipt
  readonly mayEnd: boolean
  readonly reload: () => void
}

const Detail = ({ run, mayEnd, reload }: Props) => {
  useEffect(() => {
    if (run.closed) announce(receiptOf(run))
  }, [run.closed])
  const cancel = async (reason: string) => {
    const { state } = await post<Receipt>(`outbox/dead/runs/${part(run.id)}/cancel`, { reason })
    announce(`The work on the plan is ${state}.`)
    reload()
  }
  return (
    <>
      <p class="lead">
        <StateMark state={run.state} /> {run.stateReason ?? ""}
      </p>
      <p>
        <strong>{receiptOf(run)}</strong>
      </p>
      {mayEnd && run.state === "running" && (
        <p class="buttons">
          <Ask verb="Cancel" question="End the work on this plan?" asksWhy isDanger act={cancel}>
            <p>What is done stays. The other events stay dead, and need a new plan.</p>
          </Ask>
        </p>
      )}
      <Section title="The plan">
        <Facts
          facts={[
            ["Reason", run.reason],
            ["By", run.by],
            ["Began", run.started === undefined ? undefined : <Since key="started" at={run.started} />],
            ["Ended", run.ended === undefined ? undefined : <Since key="ended" at={run.ended} />],
            ["Name", run.id]
          ]}
        />
      </Section>
      <p>
        <a href={to.outbox}>All dead events</a>
      </p>
    </>
  )
}

export const EventRun = ({ id }: { readonly id: string }) => {
  const may = useOutboxPermissions()
  const { value, refusal, reload } = useAnswer<Receipt>(`outbox/dead/runs/${part(id)}`, (last) =>
    last === undefined || last.closed ? undefined : last.state === "running" ? 1_000 : 3_000
  )
  const name = value === undefined ? "Plan" : verbs[value.action]
  return (
    <>
      <Title name={`${name} · Outbox`}>Outbox · {name}</Title>
      {value === undefined ? (
        <Waiting refusal={refusal} />
      ) : (
        <>
          <Problem refusal={refusal} />
          <Detail run={value} mayEnd={may("operate") || may(value.action)} reload={reload} />
        </>
      )}
    </>
  )
}
