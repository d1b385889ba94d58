/** What a plan would do. */
import type { Plan } from "../../src/RunAnswers.ts"
import { Facts } from "./layout.tsx"
import { PlanChanges } from "./Transforms.tsx"
import { counted, duration, number, Until } from "./text.tsx"

const does: Readonly<Record<Plan["action"], string>> = {
  replay: "is replayed",
  toTier: "is replayed to a retry tier",
  discard: "is given up",
  restore: "is brought back"
}

interface Props {
  readonly binding: string
  /** Of a binding of several topics. */
  readonly topic: string | undefined
  readonly plan: Plan
}

export const PlanPreview = ({ binding, topic, plan }: Props) => {
  const { action, count, targets, sample, refused, refusals = [], passedOver, rate, canary, canaryWaitMillis } = plan
  const isCopying = action === "replay" || action === "toTier"
  return (
    <>
      <p>
        <strong>{counted(count, `letter ${does[action]}`, `letters ${does[action].replace(/^is/, "are")}`)}.</strong>{" "}
        {refused > 0 && `${counted(refused, "letter stays", "letters stay")}, because they cannot be published. `}
        {passedOver > 0 && `${counted(passedOver, "letter stays", "letters stay")}, replayed too often already.`}
      </p>
      <Facts
        facts={[
          ["To", targets.map(({ name, count: copies }) => `${name} (${number(copies)})`).join(", ")],
          ["First letters", sample.slice(0, 5).join(", ")],
          ["Transform", plan.transform],
          ["Would stay because", refusals.map(({ name, count: letters }) => `${name} (${number(letters)})`).join("; ")],
          [
            "First and alone",
            isCopying
              ? `${counted(canary, "copy", "copies")}, then up to ${duration(canaryWaitMillis)} of waiting`
              : undefined
          ],
          ["Rate", isCopying ? `${number(rate)} a second` : undefined],
          ["Stops itself above", isCopying ? `${plan.stopAbove} % that came back` : undefined],
          ["Reason", plan.reason],
          ["Good for", <Until key="expires" at={plan.expires} />]
        ]}
      />
      {plan.transform !== undefined && <PlanChanges binding={binding} topic={topic} plan={plan} />}
    </>
  )
}
