/** The holds of the fleet on a binding, and the buttons that hold and release it in all processes. */
import type { BindingHold, BindingSummary } from "../../src/Answers.ts"
import type { Commanded } from "../../src/FleetAnswers.ts"
import { part, post } from "../data/api.ts"
import { useMayCommandFleet } from "../data/hooks.ts"
import { Ask } from "./Ask.tsx"
import { announce } from "./announce.tsx"
import { nameOf } from "./BindingTabs.tsx"
import { counted, Ends, Since } from "./text.tsx"

/** Who holds what, why, and until when. */
const Hold = ({ hold: { tier, by, reason, since, until, condition } }: { readonly hold: BindingHold }) =>
  condition === undefined ? (
    <>
      {tier === undefined ? "Paused" : `Tier ${tier} is paused`} in all processes by <strong>{by}</strong> since{" "}
      <Since at={since} />
      {until !== undefined && (
        <>
          , until <Ends at={until} />
        </>
      )}
      : {reason}
    </>
  ) : (
    <>
      Paused in this process since <Since at={since} />, until the process can read the holds of its fleet: {reason}
    </>
  )

/** Names the processes that have not answered. */
const outcomeOf = ({ answers, missing }: Commanded): string => {
  const all = answers.length + missing.length
  const silent = missing.map(({ host, pid }) => `${host} (pid ${pid})`).join(", ")
  return `${answers.length} of ${counted(all, "process", "processes")} answered.${silent === "" ? "" : ` No answer yet: ${silent}.`}`
}

interface ToAllProps {
  readonly binding: string
  readonly verb: "pause" | "resume"
  readonly tier?: number | undefined
  readonly done?: (() => void) | undefined
}

const words = {
  pause: ["Pause everywhere", "No process handles its records, also none that starts later, until it is released."],
  resume: ["Release", "Records go on in every process that nothing else pauses."]
} as const

const ToAll = ({ binding, verb, tier, done }: ToAllProps) => {
  const [label, means] = words[verb]
  const what = `${tier === undefined ? "" : `tier ${tier} of `}${nameOf(binding)}`
  return (
    <Ask
      verb={tier === undefined ? label : `${label} tier ${tier}`}
      question={`${verb === "pause" ? "Pause" : "Release"} ${what} in all processes?`}
      isDanger={verb === "pause"}
      asksWhy
      act={async (reason) => {
        const body = { scope: "fleet", reason, ...(tier === undefined ? {} : { tier }) }
        const commanded = await post<Commanded>(`bindings/${part(binding)}/${verb}`, body)
        announce(`${what} is ${verb === "pause" ? "held" : "released"}. ${outcomeOf(commanded)}`)
        done?.()
      }}
    >
      <p>{means}</p>
    </Ask>
  )
}

interface EverywhereProps {
  readonly binding: Pick<BindingSummary, "key" | "holds">
  readonly done?: () => void
}

/** The holds, for everybody who may see the binding; the buttons for those who may operate it, where the program belongs to a fleet. */
export const Everywhere = ({ binding: { key, holds = [] }, done }: EverywhereProps) => {
  const may = useMayCommandFleet(key)
  const isHeld = holds.some(({ tier, condition }) => tier === undefined && condition === undefined)
  if (!may && holds.length === 0) return null
  return (
    <div class="everywhere">
      {holds.map((hold) => (
        <p key={hold.tier ?? 0}>
          <Hold hold={hold} />
        </p>
      ))}
      {may && (
        <p class="buttons">
          <ToAll binding={key} verb={isHeld ? "resume" : "pause"} done={done} />
          {holds.map(({ tier }) =>
            tier === undefined ? null : <ToAll key={tier} binding={key} verb="resume" tier={tier} done={done} />
          )}
        </p>
      )}
    </div>
  )
}
