/** What a transform makes of letters, line by line. Each line begins with its sign, so that nobody needs the colours. */
import { useEffect, useId, useState } from "preact/hooks"
import type { DiffLine, Transformed } from "../../src/DeadLetterAnswers.ts"
import type { Plan, PlanSample } from "../../src/RunAnswers.ts"
import { ofTopic, part } from "../data/api.ts"
import { useAnswer } from "../data/hooks.ts"
import { announce } from "./announce.tsx"
import { Problem, Section, Waiting } from "./layout.tsx"
import { MaskNote } from "./MaskNote.tsx"

/** Readers of the screen tell insertions and deletions by their elements. */
const elements = { "+": "ins", "-": "del", " ": "span", "…": "span" } as const

const Lines = ({ title, lines }: { readonly title: string; readonly lines: ReadonlyArray<DiffLine> }) =>
  lines.length === 0 ? null : (
    <>
      <p class="dim">{title}</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long text scrolls by keyboard */}
      <pre class="diff" tabIndex={0}>
        {lines.map(({ sign, text }, index) => {
          const Element = elements[sign]
          return (
            <Element key={index}>
              {sign} {text}
            </Element>
          )
        })}
      </pre>
    </>
  )

/** In one sentence. */
const saidOf = ({ transform, outcome, reason, changed, decodable }: Transformed): string => {
  if (outcome === "stays") return reason ?? `${transform} leaves the letter as it is, so a run would not publish it.`
  const parts = changed.filter((each) => each !== "headers")
  const what = parts.length === 0 ? "neither key nor value" : parts.join(" and ")
  const warning = decodable === false ? " Today's serde cannot read the copy: it would fail again." : ""
  return `${transform} changes ${what} of the copy. The letter itself stays as it is.${warning}`
}

const Outcome = ({ found }: { readonly found: Transformed }) => (
  <>
    <p class={found.outcome === "stays" || found.decodable === false ? "problem" : undefined}>{saidOf(found)}</p>
    {found.difference === undefined ? (
      found.outcome === "copied" && <p class="dim">The lines are shown with the permission view-payload.</p>
    ) : (
      <>
        <MaskNote mask={found.difference.mask} />
        <Lines title="Key" lines={found.difference.key} />
        <Lines title="Value" lines={found.difference.value} />
        <Lines title="Headers" lines={found.difference.headers} />
      </>
    )}
  </>
)

interface ChoiceProps {
  readonly transforms: ReadonlyArray<string>
  /** The first choice, which chooses none. */
  readonly none?: string
  readonly label: string
}

/** One of the binding's functions. */
export const TransformChoice = ({ transforms, none, label }: ChoiceProps) => {
  const id = useId()
  return (
    <>
      <label for={id}>{label}</label>
      <select id={id} name="transform">
        {none !== undefined && <option value="">{none}</option>}
        {transforms.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </>
  )
}

interface TryProps {
  readonly binding: string
  /** Of a binding of several topics. */
  readonly topic: string | undefined
  readonly position: string
  readonly transforms: ReadonlyArray<string>
}

/** Shows what one of the functions makes of a letter. Nothing where the caller may use none. */
export const TryTransform = ({ binding, topic, position, transforms }: TryProps) => {
  const [name, setName] = useState<string>()
  const path = `bindings/${part(binding)}/dlt/records/${part(position)}/transformed?transform=${part(name ?? "")}`
  const { value, refusal, reload } = useAnswer<Transformed>(name === undefined ? undefined : ofTopic(path, topic))
  useEffect(() => {
    if (value !== undefined) announce(saidOf(value))
  }, [value])
  if (transforms.length === 0) return null
  const show = (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }) => {
    event.preventDefault()
    const chosen = String(new FormData(event.currentTarget).get("transform"))
    if (chosen === name) reload()
    else setName(chosen)
  }
  return (
    <Section title="What a transform makes of it">
      <form onSubmit={show}>
        <TransformChoice label="Transform" transforms={transforms} />
        <p class="buttons">
          <button type="submit">Show the difference</button>
        </p>
      </form>
      <Problem refusal={refusal} />
      {refusal === undefined && value !== undefined && <Outcome found={value} />}
    </Section>
  )
}

/** So many letters of a plan are shown. */
const sampleSize = 3

/** What the transform of a plan makes of its first letters. */
export const PlanChanges = ({
  binding,
  topic,
  plan
}: Pick<TryProps, "binding" | "topic"> & { readonly plan: Plan }) => {
  const path = `bindings/${part(binding)}/dlt/plans/${part(plan.id)}/sample?count=${sampleSize}`
  const { value, refusal } = useAnswer<PlanSample>(ofTopic(path, topic))
  if (value === undefined) return <Waiting refusal={refusal} />
  return (
    <>
      {value.letters.map((found) => (
        <section key={found.position}>
          <h4>Letter {found.position}</h4>
          <Outcome found={found} />
        </section>
      ))}
    </>
  )
}
