/** What is stuck, since when, why, and what to do: the worst first. */
import { useEffect, useState } from "preact/hooks"
import type { BindingSummary, HealthReason, State } from "../../src/Answers.ts"
import { useLive } from "../data/hooks.ts"
import { wordsOf } from "../data/reasons.ts"
import { to } from "../data/route.ts"
import { announce } from "../parts/announce.tsx"
import { nameOf } from "../parts/BindingTabs.tsx"
import { Everywhere } from "../parts/Everywhere.tsx"
import { HeldRecords } from "../parts/HeldRecords.tsx"
import { BindingState, type Column, Section, StateMark, Table, Title, Waiting } from "../parts/layout.tsx"
import { Outside, outsideVerdict } from "../parts/Outside.tsx"
import { counted, duration, number, Since, topicsOf } from "../parts/text.tsx"

const Links = ({ keys }: { readonly keys: ReadonlyArray<string> }) => (
  <>
    {keys.map((key, index) => (
      <span key={key}>
        {index === 0 ? "" : ", "}
        <a href={to.binding(key)}>{nameOf(key)}</a>
      </span>
    ))}
  </>
)

/** The partition, and how far behind it is. */
const placeOf = ({ topic, partition, forMillis, lag }: HealthReason): string =>
  [
    ...(topic === undefined ? [] : [partition === undefined ? `topic ${topic}` : `partition ${topic}-${partition}`]),
    ...(forMillis === undefined ? [] : [`has waited for ${duration(forMillis)}`]),
    ...(lag === undefined ? [] : [`${counted(lag, "record")} behind`])
  ].join(" · ")

interface SentenceProps {
  readonly reason: HealthReason
  /** The binding that it is about, where it is about one. */
  readonly binding: BindingSummary | undefined
}

const Sentence = ({ reason, binding }: SentenceProps) => {
  const { is, advice, isMild } = wordsOf(reason.reason)
  const keys = reason.bindings.map((name) => `${reason.cluster ?? "default"}:${name}`)
  const place = placeOf(reason)
  return (
    <li class={isMild === true ? "mild" : "bad"}>
      <p>
        <strong>
          {keys.length === 0 ? "The program" : <Links keys={keys} />} {is}
        </strong>
        {reason.since !== undefined && (
          <>
            {" "}
            since <Since at={reason.since} />
          </>
        )}
        {place !== "" && ` · ${place}`}
      </p>
      <p>{reason.message}</p>
      <p class="dim">{advice}</p>
      {binding !== undefined && <Everywhere binding={binding} />}
    </li>
  )
}

/** Its buttons are there at once: a partition stands until somebody decides. */
const Undecided = ({ binding: { key, undecided = 0 } }: { readonly binding: BindingSummary }) => (
  <li class="bad">
    <p>
      <strong>
        <a href={to.binding(key)}>{nameOf(key)}</a> has {counted(undecided, "record")} that{" "}
        {undecided === 1 ? "waits" : "wait"} for a decision
      </strong>
    </p>
    <HeldRecords binding={key} count={undecided} />
  </li>
)

const Letters = ({ binding: { key, deadLetters = 0 } }: { readonly binding: BindingSummary }) => (
  <li class="mild">
    <p>
      <strong>
        <a href={to.binding(key)}>{nameOf(key)}</a> has {counted(deadLetters, "dead letter")}
      </strong>
    </p>
    <p>
      <a href={to.failures(key)}>Look at the failures of {nameOf(key)}</a>
    </p>
  </li>
)

const columnsOf = (isOutside: boolean): ReadonlyArray<Column<BindingSummary>> => [
  { title: "Binding", of: ({ key }) => <a href={to.binding(key)}>{nameOf(key)}</a> },
  { title: "State", of: BindingState },
  { title: "Lag", of: ({ lag }) => (lag === undefined ? "–" : number(lag)), isNumber: true },
  {
    title: "Dead letters",
    of: ({ key, deadLetters }) =>
      deadLetters === undefined ? "–" : <a href={to.failures(key)}>{number(deadLetters)}</a>,
    isNumber: true
  },
  isOutside
    ? { title: "Members", of: ({ outside }) => outside?.members ?? "–", isNumber: true }
    : {
        title: "Breaker",
        of: ({ breaker }) => (breaker === undefined ? "–" : <StateMark state={breaker} />),
        isExtra: true
      },
  { title: "Partitions", of: ({ partitions }) => number(partitions), isNumber: true, isExtra: true },
  { title: "Topic", of: topicsOf, isLong: true, isExtra: true },
  { title: "Group", of: ({ groupId }) => groupId, isLong: true, isExtra: true }
]

/** A row whose columns are the same is not drawn again. */
const columns = { inside: columnsOf(false), outside: columnsOf(true) }

/** So many rows are laid out fast enough, again with each state. */
const mostRows = 25

interface BindingsProps {
  readonly bindings: ReadonlyArray<BindingSummary>
  readonly isOutside: boolean
}

const Bindings = ({ bindings, isOutside }: BindingsProps) => {
  const [text, setText] = useState("")
  const [showsAll, setShowsAll] = useState(false)
  const wanted = text.trim()
  const found =
    wanted === ""
      ? bindings
      : bindings.filter((each) => `${each.key} ${topicsOf(each)} ${each.groupId}`.includes(wanted))
  const rows = showsAll ? found : found.slice(0, mostRows)
  return (
    <>
      {bindings.length > mostRows && (
        <>
          <label for="filter">Only with this in name, topic or group</label>
          <input id="filter" value={text} autocomplete="off" onInput={(event) => setText(event.currentTarget.value)} />
          <p role="status">
            {number(rows.length)} of {counted(bindings.length, "binding")}
          </p>
        </>
      )}
      <Table
        label="Bindings"
        rows={rows}
        columns={isOutside ? columns.outside : columns.inside}
        keyOf={({ key }) => key}
        isEven
      />
      {rows.length < found.length && (
        <p class="buttons">
          <button type="button" onClick={() => setShowsAll(true)}>
            Show all {number(found.length)}
          </button>
        </p>
      )}
    </>
  )
}

const bindingOf = (
  { bindings: [name, ...others], cluster = "default" }: HealthReason,
  all: ReadonlyArray<BindingSummary>
): BindingSummary | undefined => (others.length === 0 ? all.find(({ key }) => key === `${cluster}:${name}`) : undefined)

const verdictOf = ({ bindings, health }: State): string => {
  const undecided = bindings.reduce((sum, each) => sum + (each.undecided ?? 0), 0)
  const worse = health.reasons.filter(({ reason }) => wordsOf(reason).isMild !== true).length
  const mild = health.reasons.length - worse
  if (worse > 0) return `${counted(worse, "thing is", "things are")} wrong`
  if (undecided > 0) return `${counted(undecided, "record waits", "records wait")} for a decision`
  if (mild > 0) return `${counted(mild, "thing holds", "things hold")} records back`
  if (health.outside) return outsideVerdict(bindings)
  return bindings.length === 0 ? "No binding is registered" : "All bindings work"
}

export const Now = () => {
  const { state, refusal } = useLive()
  const verdict = state === undefined ? undefined : verdictOf(state)
  useEffect(() => {
    if (verdict !== undefined) announce(`${verdict}.`)
  }, [verdict])
  if (state === undefined)
    return (
      <>
        <Title name="Now">Now</Title>
        <Waiting refusal={refusal} />
      </>
    )
  const undecided = state.bindings.filter((binding) => (binding.undecided ?? 0) > 0)
  const isOutside = state.health.outside === true
  const letters = state.bindings.filter(({ deadLetters = 0 }) => deadLetters > 0)
  return (
    <>
      <Title name="Now">{verdict}</Title>
      {isOutside && <Outside state={state} />}
      {state.health.reasons.length + undecided.length + letters.length > 0 && (
        <ul class="sentences" aria-label="What needs a look, the worst first">
          {state.health.reasons.map((reason) => (
            <Sentence
              key={`${reason.reason} ${reason.cluster} ${reason.bindings} ${reason.topic} ${reason.partition} ${reason.message.replace(/\d+/g, "")}`}
              reason={reason}
              binding={bindingOf(reason, state.bindings)}
            />
          ))}
          {undecided.map((binding) => (
            <Undecided key={binding.key} binding={binding} />
          ))}
          {letters.map((binding) => (
            <Letters key={binding.key} binding={binding} />
          ))}
        </ul>
      )}
      <Section title={isOutside ? "Bindings of the configuration" : "Bindings of this process"}>
        {state.bindings.length === 0 ? (
          <p class="dim">None yet.</p>
        ) : (
          <Bindings bindings={state.bindings} isOutside={isOutside} />
        )}
      </Section>
    </>
  )
}
