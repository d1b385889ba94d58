/** Makes a plan: what to do with the letters, how carefully, and why. */
import type { Plan } from "../../src/RunAnswers.ts"
import { ofTopic, part, post } from "../data/api.ts"
import { Count } from "./fields.tsx"
import { PlanStep, textIn } from "./PlanStep.tsx"
import { TransformChoice } from "./Transforms.tsx"

/** Letters by their group, or by their positions. */
export type Select = { readonly groups: ReadonlyArray<string> } | { readonly records: ReadonlyArray<string> }

type Action = Plan["action"]

interface Props {
  readonly binding: string
  /** Of a binding of several topics. */
  readonly topic: string | undefined
  readonly select: Select
  readonly actions: ReadonlyArray<Action>
  /** The names of the functions that the caller may use. */
  readonly transforms: ReadonlyArray<string>
  /** Undefined once the form says something else than the last plan. */
  readonly planned: (plan: Plan | undefined) => void
}

const means: Readonly<Record<Action, string>> = {
  replay: "Replay to where they came from",
  toTier: "Replay to a retry tier",
  discard: "Give them up",
  restore: "Bring back those that were given up"
}

/** The body of the request: what the form does not ask for is the API's own default. */
const bodyOf = (form: FormData, select: Select): Record<string, unknown> => {
  const text = (name: string) => textIn(form, name)
  const action = text("action")
  const isCopying = action === "replay" || action === "toTier"
  return {
    ...{ action, select, reason: text("reason") },
    ...(action === "toTier" ? { tier: Number(text("tier")) } : {}),
    ...(isCopying ? { rate: Number(text("rate")), canary: Number(text("canary")) } : {}),
    ...(isCopying && text("transform") !== "" ? { transform: text("transform") } : {}),
    ...(isCopying && form.has("ignoreMaxReplays") ? { ignoreMaxReplays: true } : {})
  }
}

const Copying = ({ transforms }: Pick<Props, "transforms">) => (
  <>
    <Count label="Most copies a second" name="rate" value={50} least={1} />
    <Count label="Copies that go first and alone" name="canary" value={20} least={0} />
    {transforms.length > 0 && <TransformChoice label="Transform" none="None" transforms={transforms} />}
    <label class="check">
      <input type="checkbox" name="ignoreMaxReplays" /> Also letters that were replayed too often
    </label>
  </>
)

export const PlanForm = ({ binding, topic, select, actions, transforms, planned }: Props) => (
  <PlanStep
    title="2. Plan"
    lead="A plan says what a run would do. It changes nothing."
    {...{ actions, means }}
    changed={() => planned(undefined)}
    plan={async (form) =>
      planned(await post<Plan>(ofTopic(`bindings/${part(binding)}/dlt/plans`, topic), bodyOf(form, select)))
    }
    fields={(action) => (
      <>
        {action === "toTier" && <Count label="Retry tier" name="tier" value={1} least={1} />}
        {(action === "replay" || action === "toTier") && <Copying transforms={transforms} />}
      </>
    )}
  />
)
