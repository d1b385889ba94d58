/** One dead letter: what it is, why it failed, and what it holds, for those who may see that. */
import type { Letter } from "../../src/DeadLetterAnswers.ts"
import { ofTopic, part } from "../data/api.ts"
import { useAnswer, usePermissions, useTransforms } from "../data/hooks.ts"
import { to } from "../data/route.ts"
import { BindingTabs } from "../parts/BindingTabs.tsx"
import { Causes } from "../parts/Causes.tsx"
import { Contents } from "../parts/Contents.tsx"
import { Facts, Section, Waiting } from "../parts/layout.tsx"
import { Repair } from "../parts/Repair.tsx"
import { TryTransform } from "../parts/Transforms.tsx"
import { number, Since } from "../parts/text.tsx"

const originOf = ({ origin, originalTopic, originalPartition, originalOffset }: Letter) =>
  origin === "unknown"
    ? "unknown: no header says where the record was first; a replay publishes it to the topic of the binding"
    : `${originalTopic}-${originalPartition} at ${originalOffset}`

const factsOf = (binding: string, topic: string | undefined, letter: Letter) =>
  [
    ["State", letter.state],
    ["Failed with", letter.exceptionClass],
    [letter.origin === "unknown" ? "Written" : "Dead-lettered", <Since key="at" at={letter.deadLettered} />],
    ["Because", [letter.reason, letter.detail].filter((each) => each !== undefined && each !== "").join(": ")],
    ["Came from", originOf(letter)],
    ["Attempts", letter.origin === "unknown" && letter.totalAttempts === 0 ? undefined : number(letter.totalAttempts)],
    ["Attempts by tier", letter.tiers.map(({ tier, attempts }) => `${tier}: ${attempts}`).join(", ")],
    ["Replays", number(letter.replayCount)],
    [
      "Came back from",
      letter.cameBackFrom === undefined ? undefined : (
        <a key="run" href={to.run(binding, letter.cameBackFrom)}>
          a run
        </a>
      )
    ],
    ["Can be read today", letter.decodable === undefined ? undefined : letter.decodable ? "yes" : "no"],
    ["Size of the value", letter.valueBytes === undefined ? "none" : `${number(letter.valueBytes)} bytes`],
    ["Cannot be read", letter.unreadable],
    [
      "Reason group",
      <a key="group" href={to.group(binding, letter.fingerprint, topic)}>
        {letter.fingerprint}
      </a>
    ]
  ] as const

const History = ({ binding, letter: { history } }: { readonly binding: string; readonly letter: Letter }) =>
  history.length === 0 ? null : (
    <Section title="What was done about it">
      <ol>
        {history.map(({ action, at, run, by, reason, copy }) => (
          <li key={`${action} ${at} ${run}`}>
            {action} <Since at={at} />
            {by !== undefined && ` by ${by}`}
            {reason !== undefined && `, because: ${reason}`}
            {copy !== undefined && `, as ${copy}`}
            {run !== undefined && (
              <>
                , by <a href={to.run(binding, run)}>this run</a>
              </>
            )}
          </li>
        ))}
      </ol>
    </Section>
  )

interface Props {
  readonly binding: string
  /** Of a binding of several topics. */
  readonly topic: string | undefined
  readonly position: string
}

export const Record = ({ binding, topic, position }: Props) => {
  const may = usePermissions(binding)
  const transforms = useTransforms(binding)
  const path = `bindings/${part(binding)}/dlt/records/${part(position)}`
  const { value, refusal, reload } = useAnswer<Letter>(ofTopic(path, topic))
  return (
    <>
      <BindingTabs binding={binding} tab="Failures" detail={`Letter ${position}`} />
      {value === undefined ? (
        <Waiting refusal={refusal} />
      ) : (
        <>
          <Facts facts={factsOf(binding, topic, value)} />
          <History binding={binding} letter={value} />
          <Causes letter={value} />
          {value.payload === undefined ? (
            <p class="dim">Key, value and headers are shown with the permission view-payload.</p>
          ) : (
            <Contents payload={value.payload} />
          )}
          {value.state !== "unreadable" && (
            <TryTransform binding={binding} topic={topic} position={position} transforms={transforms} />
          )}
          {value.state !== "foreign" && value.state !== "unreadable" && (
            <Repair
              binding={binding}
              topic={topic}
              select={{ records: [position] }}
              may={may}
              canRestore={value.state === "dealt-with"}
              changed={reload}
            />
          )}
        </>
      )}
    </>
  )
}
