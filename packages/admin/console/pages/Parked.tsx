/** The parked keys of a binding: which, since when, behind which record, why, the two decisions about one that is held, and the one about all that are stranded. */
import { useState } from "preact/hooks"
import type { AcceptedLoss, AllParked, ParkedDecision, ParkedKey } from "../../src/ParkedAnswers.ts"
import { part, post } from "../data/api.ts"
import { useAnswer, usePermissions } from "../data/hooks.ts"
import { Ask } from "../parts/Ask.tsx"
import { announce } from "../parts/announce.tsx"
import { BindingTabs, nameOf } from "../parts/BindingTabs.tsx"
import { type Column, Problem, Table, Waiting } from "../parts/layout.tsx"
import { counted, number, Since } from "../parts/text.tsx"

const placeOf = ({ topic, position }: ParkedKey): string => `${topic} ${position}`

const verbs = {
  retry: { verb: "Retry", means: "It is handled again, and then what follows it, in order." },
  skip: { verb: "Skip", means: "It goes to the dead letter topic for the reason that it has, and its key goes on." }
} as const

const gone = {
  here: "is decided about",
  owner: "is decided about: the process that owns its partition reads the decision in the first retry topic"
} as const

interface DecisionsProps {
  readonly binding: string
  readonly parked: ParkedKey
  readonly decided: () => void
}

const Decisions = ({ binding, parked, decided }: DecisionsProps) => (
  <>
    {(["retry", "skip"] as const).map((decision) => {
      const { verb, means } = verbs[decision]
      return (
        <Ask
          key={decision}
          verb={verb}
          question={`${verb} ${placeOf(parked)} of ${nameOf(binding)}?`}
          isDanger={decision === "skip"}
          asksWhy
          act={async (reason) => {
            const query = `topic=${part(parked.topic)}&reason=${part(reason)}`
            const path = `bindings/${part(binding)}/parked/${part(parked.position)}/${decision}?${query}`
            const { by } = await post<ParkedDecision>(path)
            announce(`${placeOf(parked)} ${gone[by]}.`)
            decided()
          }}
        >
          <p>{whyOf(parked)}</p>
          <p>{means}</p>
        </Ask>
      )
    })}
  </>
)

interface AcceptLossProps {
  readonly binding: string
  readonly stranded: number
  readonly accepted: () => void
}

/** The number that was seen goes with the decision, which is refused when there are other keys by then. */
const AcceptLoss = ({ binding, stranded, accepted }: AcceptLossProps) => (
  <p class="buttons">
    <Ask
      verb="Accept loss"
      question={`Accept the loss of ${counted(stranded, "stranded key")} of ${nameOf(binding)}?`}
      isDanger
      asksWhy
      act={async (reason) => {
        const query = `keys=${stranded}&reason=${part(reason)}`
        const { keys } = await post<AcceptedLoss>(`bindings/${part(binding)}/parked/accept-loss?${query}`)
        announce(`The loss of ${counted(keys, "key")} is accepted.`)
        accepted()
      }}
    >
      <p>Their records go to the dead letter topic, and their partitions run. What followed them is not looked for.</p>
    </Ask>
  </p>
)

const whyOf = ({ exceptionClass, message }: ParkedKey): string =>
  [exceptionClass, message].filter((each) => each !== undefined && each !== "").join(": ") || "–"

const followersOf = ({ followers, hasMoreFollowers }: ParkedKey): string => {
  if (followers === undefined) return "not known here"
  return hasMoreFollowers ? `${number(followers)} or more` : number(followers)
}

const stateOf = ({ state, tier, due }: ParkedKey) =>
  state === "waiting" && due !== undefined ? (
    <>
      Waits in tier {tier}, due <Since at={due} />
    </>
  ) : (
    {
      held: "Waits for a decision",
      waiting: "Waits",
      draining: "What followed is handled",
      stranded: "Needs accept-loss"
    }[state]
  )

const columns: ReadonlyArray<Column<ParkedKey>> = [
  { title: "Behind record", of: placeOf },
  { title: "Key", of: ({ key }) => key ?? "hidden" },
  { title: "State", of: stateOf },
  { title: "Since", of: ({ since }) => <Since at={since} /> },
  { title: "Followers", of: followersOf, isNumber: true },
  { title: "Why", of: whyOf, isLong: true }
]

const summaryOf = ({ counts: { held, waiting, draining, stranded }, orderingMode }: AllParked): string =>
  held + waiting + draining + stranded === 0
    ? orderingMode === "PER_KEY"
      ? "No key is parked."
      : `The binding parks no keys: its orderingMode is ${orderingMode}.`
    : `${counted(held, "key")} held, ${number(waiting)} waiting, ${number(draining)} draining${stranded === 0 ? "" : `, ${number(stranded)} stranded`}.`

export const Parked = ({ binding }: { readonly binding: string }) => {
  const may = usePermissions(binding)
  const [page, setPage] = useState<string | undefined>(undefined)
  const query = page === undefined ? "" : `?page=${part(page)}`
  const { value, refusal, reload } = useAnswer<AllParked>(`bindings/${part(binding)}/parked${query}`, () => 5_000)
  const decision: Column<ParkedKey> = {
    title: "Decision",
    of: (parked) => (parked.state === "held" ? <Decisions {...{ binding, parked }} decided={reload} /> : null)
  }
  return (
    <>
      <BindingTabs binding={binding} tab="Parked keys" />
      {value === undefined ? (
        <Waiting refusal={refusal} />
      ) : (
        <>
          <Problem refusal={refusal} />
          <p class="lead">{summaryOf(value)}</p>
          {value.counts.stranded > 0 && may("discard") && (
            <AcceptLoss {...{ binding, stranded: value.counts.stranded }} accepted={reload} />
          )}
          {value.keys.length > 0 && (
            <Table
              label={`Parked keys of ${nameOf(binding)}`}
              rows={value.keys}
              columns={may("operate") ? [...columns, decision] : columns}
              keyOf={placeOf}
            />
          )}
          <p class="buttons">
            {page !== undefined && (
              <button type="button" onClick={() => setPage(undefined)}>
                First page
              </button>
            )}
            {value.next !== undefined && (
              <button type="button" onClick={() => setPage(value.next)}>
                Next page
              </button>
            )}
          </p>
        </>
      )}
    </>
  )
}
