/** The words of a console that runs no bindings, and looks at those of other processes straight on their clusters. */
import type { BindingSummary, State } from "../../src/Answers.ts"
import { to } from "../data/route.ts"
import { nameOf } from "./BindingTabs.tsx"
import { counted } from "./text.tsx"

const isAlone = ({ outside }: BindingSummary): boolean => outside?.members === 0

/** The title of the page Now. */
export const outsideVerdict = (bindings: ReadonlyArray<BindingSummary>): string => {
  const alone = bindings.filter(isAlone).length
  return alone > 0
    ? `Nobody consumes ${counted(alone, "binding")}`
    : `${counted(bindings.length, "binding")}, seen from outside`
}

/** A cluster that does not answer is a reason of its own, for all of its bindings. */
const troublesOf = ({ bindings, health }: State) => {
  const away = new Set(
    health.reasons.flatMap(({ cluster = "default", bindings: names }) => names.map((name) => `${cluster}:${name}`))
  )
  return bindings.flatMap((binding) => {
    const { key, groupId, lag, outside } = binding
    if (away.has(key)) return []
    if (outside?.problem !== undefined) return [{ key, is: "cannot be asked about", why: outside.problem }]
    const toHandle = lag === undefined ? "" : `, and ${counted(lag, "record")} to handle`
    const why = `Group ${groupId} has no members${toHandle}.`
    return isAlone(binding) ? [{ key, is: "has nobody who consumes it", why }] : []
  })
}

/** What this console sees, what it does not, and what of that needs a look. */
export const Outside = ({ state }: { readonly state: State }) => {
  const troubles = troublesOf(state)
  return (
    <>
      <p class="lead">
        This console looks from outside, straight on Kafka, and runs no bindings. It sees the lag from committed
        offsets, dead letters, and the fleet.
      </p>
      <p>
        It does not see whether handlers work, what a circuit breaker or a single process holds back, and records that
        wait for a decision: the console of a process does. No handlers are loaded, so a rehearsal decodes records and
        calls no handler.
      </p>
      {troubles.length > 0 && (
        <ul class="sentences" aria-label="What is seen from outside">
          {troubles.map(({ key, is, why }) => (
            <li key={key} class="bad">
              <p>
                <strong>
                  <a href={to.binding(key)}>{nameOf(key)}</a> {is}
                </strong>
              </p>
              <p>{why}</p>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
