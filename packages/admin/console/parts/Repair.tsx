/** Three steps from dead letters to a run: rehearse it, plan it, apply the plan. Nothing changes before the last one. */
import { useId, useState } from "preact/hooks"
import type { Rehearsal } from "../../src/DeadLetterAnswers.ts"
import type { Plan, Receipt } from "../../src/RunAnswers.ts"
import { ofTopic, part, post } from "../data/api.ts"
import { type Permission, useAnswer, useChange, useTransforms } from "../data/hooks.ts"
import { go, to } from "../data/route.ts"
import { Ask } from "./Ask.tsx"
import { announce } from "./announce.tsx"
import { Problem, Section } from "./layout.tsx"
import { PlanForm, type Select } from "./PlanForm.tsx"
import { PlanPreview } from "./PlanPreview.tsx"
import { counted, duration, number } from "./text.tsx"

interface Props {
  readonly binding: string
  /** Of a binding of several topics. */
  readonly topic: string | undefined
  readonly select: Select
  readonly may: (permission: Permission) => boolean
  /** Whether some of the letters were given up. */
  readonly canRestore: boolean
  /** A rehearsal has ended, or a plan was refused: other letters may be there by now. */
  readonly changed: () => void
}

type Report = NonNullable<Rehearsal["report"]>

/** The verdict in one sentence. */
const verdictOf = ({
  mode,
  selected,
  passes,
  decodes,
  undecodable,
  fails,
  timedOut,
  stays,
  skipped
}: Report): string => {
  const parts = [
    [passes, "would pass"],
    [decodes, "can be read (the handler was not called: the binding has no layer for rehearsals)"],
    [undecodable, "still cannot be read"],
    [fails, "would fail again"],
    [timedOut, "had no result in time"],
    [stays, "would stay, as the transform says"],
    [skipped, "would be left out"]
  ] as const
  const told = parts.filter(([count]) => count > 0).map(([count, text]) => `${number(count)} ${text}`)
  const end = told.length === 0 ? "nothing to say" : told.join(", ")
  return `${mode === "handler" ? "Today's code" : "Today's serde"}, of ${counted(selected, "letter")}: ${end}.`
}

const Verdict = ({ report }: { readonly report: Report }) => (
  <>
    <p>
      <strong>{verdictOf(report)}</strong>
    </p>
    {report.groups
      .flatMap(({ failures }) => failures)
      .map(({ exceptionClass, message, route, count }) => (
        <p key={`${exceptionClass} ${route} ${message}`}>
          {number(count)} would fail with {exceptionClass}
          {message === undefined || message === "" ? "" : ` (${message})`}, and go to the {route}.
        </p>
      ))}
    <p class="dim">
      It took {duration(report.tookMillis)}. Nothing was published, committed or remembered.
      {report.complete ? "" : " Not every letter has its verdict."}
    </p>
  </>
)

const Rehearse = ({ binding, topic, select, changed }: Omit<Props, "may" | "canRestore">) => {
  const [id, setId] = useState<string>()
  const { isBusy, refusal, run } = useChange()
  const base = `bindings/${part(binding)}/dlt/rehearsals`
  const { value, refusal: lost } = useAnswer<Rehearsal>(
    id === undefined ? undefined : `${base}/${part(id)}`,
    (last) => {
      if (last?.status === "running") return 500
      if (last?.report !== undefined) announce(verdictOf(last.report))
      return undefined
    }
  )
  const isRunning = id !== undefined && value?.id !== id ? lost === undefined : value?.status === "running"
  const begin = () =>
    run(async () => {
      setId((await post<Rehearsal>(ofTopic(base, topic), { select })).id)
      changed()
    })
  return (
    <li>
      <h3>1. Rehearse</h3>
      <p>Today's code reads the letters and handles them without any effect.</p>
      <p class="buttons">
        <button type="button" onClick={begin} disabled={isBusy || isRunning}>
          {isRunning ? "Rehearsing…" : "Rehearse"}
        </button>
      </p>
      <Problem refusal={refusal ?? lost} />
      {value?.status === "failed" && (
        <p class="problem">
          The rehearsal failed with {value.error}: {value.message ?? "the log says why"}
        </p>
      )}
      {value?.report !== undefined && <Verdict report={value.report} />}
    </li>
  )
}

const Apply = ({ binding, topic, plan }: Pick<Props, "binding" | "topic"> & { readonly plan: Plan }) => (
  <li>
    <h3>3. Apply</h3>
    <PlanPreview binding={binding} topic={topic} plan={plan} />
    {plan.count === 0 ? (
      <p>The plan takes no letter, so there is nothing to apply.</p>
    ) : (
      <p class="buttons">
        <Ask
          verb="Apply"
          question={`Apply this plan to ${counted(plan.count, "letter")}?`}
          isDanger={plan.action === "discard"}
          act={async () => {
            await post<Receipt>(`bindings/${part(binding)}/dlt/plans/${part(plan.id)}/apply`)
            announce("The run has begun.")
            go(to.run(binding, plan.id))
          }}
        >
          <p>Reason: {plan.reason}</p>
        </Ask>
      </p>
    )}
  </li>
)

/** Nothing for callers who may do none of it. */
export const Repair = ({ may, canRestore, ...props }: Props) => {
  const [plan, setPlan] = useState<Plan>()
  const transforms = useTransforms(props.binding)
  const id = useId()
  const actions = [
    ...(may("replay") ? (["replay", "toTier"] as const) : []),
    ...(may("discard") ? (["discard", ...(canRestore ? (["restore"] as const) : [])] as const) : [])
  ]
  if (actions.length === 0) return null
  return (
    <Section title="Repair">
      <ol class="steps" id={id}>
        {may("replay") && <Rehearse {...props} />}
        <PlanForm
          {...props}
          actions={actions}
          transforms={transforms}
          planned={(made) => {
            setPlan(made)
            if (made !== undefined) announce(`The plan takes ${counted(made.count, "letter")}.`)
          }}
        />
        {plan !== undefined && <Apply key={plan.id} binding={props.binding} topic={props.topic} plan={plan} />}
      </ol>
    </Section>
  )
}
