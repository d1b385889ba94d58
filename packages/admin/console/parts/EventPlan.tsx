/** Two steps to deal with dead events: plan it, apply the plan. Nothing changes before the last one. */
import { useState } from "preact/hooks"
import type { Plan, Receipt } from "../../src/DeadEventAnswers.ts"
import { part, post } from "../data/api.ts"
import type { Permission } from "../data/hooks.ts"
import { go, to } from "../data/route.ts"
import { Ask } from "./Ask.tsx"
import { announce } from "./announce.tsx"
import { Count } from "./fields.tsx"
import { Facts, Section } from "./layout.tsx"
import { PlanStep, textIn } from "./PlanStep.tsx"
import { counted, duration, number } from "./text.tsx"

type Action = Plan["action"]

const means: Readonly<Record<Action, string>> = {
  replay: "Replay: the outbox delivers them again",
  discard: "Delete them for good"
}

/** The body of the request: what the form does not ask for is the API's own default. */
const bodyOf = (form: FormData, fingerprint: string): Record<string, unknown> => {
  const text = (name: string) => textIn(form, name)
  const action = text("action")
  return {
    ...{ action, select: { groups: [fingerprint] }, reason: text("reason") },
    ...(action === "replay" ? { rate: Number(text("rate")), canary: Number(text("canary")) } : {})
  }
}

interface FormProps {
  readonly fingerprint: string
  readonly actions: ReadonlyArray<Action>
  /** Undefined once the form says something else than the last plan. */
  readonly planned: (plan: Plan | undefined) => void
}

const Form = ({ fingerprint, actions, planned }: FormProps) => (
  <PlanStep
    title="1. Plan"
    lead="A plan says which events it takes. It changes nothing."
    {...{ actions, means }}
    changed={() => planned(undefined)}
    plan={async (form) => planned(await post<Plan>("outbox/dead/plans", bodyOf(form, fingerprint)))}
    fields={(action) =>
      action === "replay" && (
        <>
          <Count label="Most events a second" name="rate" value={50} least={1} />
          <Count label="Events that go first and alone" name="canary" value={20} least={0} />
        </>
      )
    }
  />
)

const Apply = ({ plan }: { readonly plan: Plan }) => {
  const { action, canary, canaryWaitMillis, count, further, id, rate, reason, sample, stopAbove } = plan
  const isReplay = action === "replay"
  const verb = isReplay ? "replayed" : "deleted for good"
  return (
    <li>
      <h3>2. Apply</h3>
      <p>
        <strong>{counted(count, `event is ${verb}`, `events are ${verb}`)}.</strong>
        {further > 0 && ` ${counted(further, "further event needs", "further events need")} another plan.`}
      </p>
      <Facts
        facts={[
          ["First events", sample.slice(0, 5).join(", ")],
          [
            "First and alone",
            isReplay ? `${counted(canary, "event")}, then up to ${duration(canaryWaitMillis)} of waiting` : undefined
          ],
          ["Rate", isReplay ? `${number(rate)} a second` : undefined],
          ["Stops itself above", isReplay ? `${stopAbove} % that failed again` : undefined],
          ["Reason", reason]
        ]}
      />
      {count === 0 ? (
        <p>The plan takes no event, so there is nothing to apply.</p>
      ) : (
        <p class="buttons">
          <Ask
            verb="Apply"
            question={`Apply this plan to ${counted(count, "event")}?`}
            isDanger={!isReplay}
            act={async () => {
              await post<Receipt>(`outbox/dead/plans/${part(id)}/apply`)
              announce("The work on the plan has begun.")
              go(to.eventRun(id))
            }}
          >
            <p>Reason: {reason}</p>
            {!isReplay && <p>Nothing brings deleted events back.</p>}
          </Ask>
        </p>
      )}
    </li>
  )
}

interface Props {
  readonly fingerprint: string
  readonly may: (permission: Permission) => boolean
}

/** Nothing for callers who may do none of it. */
export const EventPlan = ({ fingerprint, may }: Props) => {
  const [plan, setPlan] = useState<Plan>()
  const actions = (["replay", "discard"] as const).filter(may)
  if (actions.length === 0) return null
  return (
    <Section title="Repair">
      <ol class="steps">
        <Form
          fingerprint={fingerprint}
          actions={actions}
          planned={(made) => {
            setPlan(made)
            if (made !== undefined) announce(`The plan takes ${counted(made.count, "event")}.`)
          }}
        />
        {plan !== undefined && <Apply key={plan.id} plan={plan} />}
      </ol>
    </Section>
  )
}
