/** The step that makes a plan, for dead letters and for dead events alike: what to do, how carefully, and why. */
import type { ComponentChildren } from "preact"
import { useId, useState } from "preact/hooks"
import { useChange } from "../data/hooks.ts"
import { Text } from "./fields.tsx"
import { Problem } from "./layout.tsx"

interface Props<Action extends string> {
  readonly title: string
  readonly lead: string
  readonly actions: ReadonlyArray<Action>
  readonly means: Readonly<Record<Action, string>>
  /** The fields that an action asks for besides its reason. */
  readonly fields: (action: Action) => ComponentChildren
  readonly plan: (form: FormData) => Promise<void>
  /** The form says something else than the last plan. */
  readonly changed: () => void
}

export const PlanStep = <Action extends string>(props: Props<Action>) => {
  const { title, lead, actions, means, fields, plan, changed } = props
  const [action, setAction] = useState<Action | undefined>(actions[0])
  const { isBusy, refusal, run } = useChange()
  const id = useId()
  const submit = (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    run(() => plan(form))
  }
  return (
    <li>
      <h3>{title}</h3>
      <p>{lead}</p>
      <form onSubmit={submit} onInput={changed}>
        <label for={id}>What to do</label>
        <select
          id={id}
          name="action"
          value={action}
          onChange={(event) => setAction(event.currentTarget.value as Action)}
        >
          {actions.map((each) => (
            <option key={each} value={each}>
              {means[each]}
            </option>
          ))}
        </select>
        {action !== undefined && fields(action)}
        <Text label="Reason" name="reason" />
        <Problem refusal={refusal} />
        <p class="buttons">
          <button type="submit" class="first" disabled={isBusy}>
            {isBusy ? "Planning…" : "Plan"}
          </button>
        </p>
      </form>
    </li>
  )
}

/** The text of a field without the space around it. */
export const textIn = (form: FormData, name: string): string => String(form.get(name) ?? "").trim()
